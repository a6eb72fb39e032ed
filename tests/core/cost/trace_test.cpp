#include "zeroplan/trace.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/cost/tiny_plan.hpp"
#include "zeroplan/memory_timeline.hpp"

namespace zeroplan {
namespace {

using test::all_gather;
using test::host;
using test::on;

/// Resident parameters; a step that gathers, computes and frees, twice.
Plan plan_with_memory() {
    const std::vector<Buffer> buffers{{.role = BufferRole::parameters,
                                       .category = Category::parameters,
                                       .dtype = DType::bf16,
                                       .elements = 1024},
                                      {.role = BufferRole::gathered_parameters,
                                       .category = Category::gathered_parameters,
                                       .dtype = DType::bf16,
                                       .elements = 512}};
    Plan plan =
        test::test_plan(test::test_cluster(2),
                        {{"micro_batch",
                          2,
                          {host(Allocate{1}), on(Stream::gather, all_gather(64'000'000)),
                           on(Stream::compute, OptimizerStep{.parameters = {0}, .elements = 1000}, {1}),
                           host(Free{1}, {2})}}},
                        buffers);
    plan.programs[0].load = {"load", 1, {host(Allocate{0})}};
    return plan;
}

TEST(MemoryOverTime, StartsWithWhatIsResident) {
    const Plan plan = plan_with_memory();
    const std::vector<MemoryPoint> points = memory_over_time(plan, 0, closed_form_step(plan));
    EXPECT_EQ(points.front().time_s, 0);
    EXPECT_EQ(points.front().live.total(), Bytes{2048});
}

TEST(MemoryOverTime, FollowsTheComputeStream) {
    const Plan plan = plan_with_memory();
    const StepTimeline step = closed_form_step(plan);
    const std::vector<MemoryPoint> points = memory_over_time(plan, 0, step);
    ASSERT_EQ(points.size(), 5U);  // resident; allocate and free, twice
    EXPECT_EQ(points[1].live[Category::gathered_parameters], Bytes{1024});
    EXPECT_DOUBLE_EQ(points[2].time_s, step.operations[1].end_s);
    EXPECT_EQ(points[2].live.total(), Bytes{2048});
    EXPECT_DOUBLE_EQ(points[4].time_s, step.step_time_s);
}

TEST(TraceJson, HasAProcessAGroupAThreadAStreamAndMonotoneTimes) {
    const Plan plan = plan_with_memory();
    const StepTimeline step = closed_form_step(plan);
    const nlohmann::json trace = nlohmann::json::parse(trace_json(plan, {step}));
    std::map<std::string, int> kinds;
    std::map<std::pair<std::string, int>, double> last;
    for (const auto& event : trace["traceEvents"]) {
        const std::string kind = event["ph"];
        ++kinds[kind];
        EXPECT_EQ(event["pid"], 1);
        double& before =
            last[{kind == "C" ? event["name"].get<std::string>() : kind, event["tid"].get<int>()}];
        EXPECT_GE(event["ts"].get<double>(), before);
        before = event["ts"];
    }
    EXPECT_EQ(kinds["M"], 4);  // the process and three streams
    EXPECT_EQ(kinds["X"], 4);
    // Memory: of points at one moment the last: start, between the iterations, end. Link load: begin and end
    // of both gathers.
    EXPECT_EQ(kinds["C"], 3 + 4);
    const auto& first = trace["traceEvents"][4];
    EXPECT_EQ(first["name"], "all_gather layers.0");
    EXPECT_EQ(first["tid"], 2);
    EXPECT_NEAR(first["dur"].get<double>(), step.operations[0].end_s * 1e6, 1e-3);
    EXPECT_EQ(first["args"]["critical_path"], true);
    EXPECT_EQ(trace["traceEvents"][0]["args"]["name"], "ranks 0-15");
}

TEST(StepCsv, HasARowAnOperation) {
    const Plan plan = plan_with_memory();
    const std::string csv = step_csv(plan, {closed_form_step(plan)});
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
    EXPECT_NE(csv.find("0-15,micro_batch,0,gather,all_gather layers.0,0,"), std::string::npos) << csv;
}

TEST(TraceJson, HasARowForWhatIsOffloadedWhereAnythingIs) {
    ClusterSpec cluster = test::test_cluster(2);
    cluster.host.dram_bytes_per_s = 400e9;
    const std::vector<Operation> operations{
        on(Stream::to_host, HostCopy{.path = CopyPath::to_host, .bytes = 1000}),
        on(Stream::host, HostStep{.bytes = 1000}, {0})};
    const auto rows = [](const Plan& plan) {
        std::map<std::string, int> count;
        const nlohmann::json trace = nlohmann::json::parse(trace_json(plan, {closed_form_step(plan)}));
        for (const nlohmann::json& event : trace["traceEvents"]) {
            if (event["name"] == "thread_name") ++count[event["args"]["name"]];
            if (event["ph"] == "X") ++count[event["name"]];
        }
        return count;
    };
    const auto offloading = rows(test::test_plan(cluster, {{"step", 1, operations}}, {}));
    EXPECT_EQ(offloading.at("device to host stream"), 1);
    EXPECT_EQ(offloading.at("host stream"), 1);
    EXPECT_EQ(offloading.at("copy gradients of layers.0 to the host"), 1);
    EXPECT_EQ(offloading.at("optimizer step on the host layers.0"), 1);
    EXPECT_EQ(offloading.count("host to device stream"), 0U);
    EXPECT_EQ(rows(plan_with_memory()).count("host stream"), 0U);
}

}  // namespace
}  // namespace zeroplan
