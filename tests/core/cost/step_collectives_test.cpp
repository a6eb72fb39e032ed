#include "zeroplan/step_collectives.hpp"

#include <gtest/gtest.h>

#include "core/cost/tiny_plan.hpp"

namespace zeroplan {
namespace {

using test::all_gather;
using test::on;
using test::reduce_scatter;

Plan plan_of(std::vector<Operation> operations, const ClusterSpec& cluster = test::test_cluster(2)) {
    return test::test_plan(cluster, {{"step", 3, std::move(operations)}}, {});
}

TEST(StepCollectives, CountsThoseThatAreAlikeLongestFirst) {
    const Plan plan =
        plan_of({on(Stream::gather, all_gather(1'000'000)), on(Stream::gather, all_gather(1'000'000)),
                 on(Stream::reduce, reduce_scatter(500'000'000))});
    const auto collectives = step_collectives(plan, 0);
    ASSERT_EQ(collectives.size(), 2U);
    EXPECT_EQ(collectives[0].kind, "reduce_scatter");
    EXPECT_EQ(collectives[0].count, 3U);
    EXPECT_EQ(collectives[0].cost.bytes, 1e9);
    // nccl-tests: busbw = S / t · (n − 1) / n
    EXPECT_DOUBLE_EQ(collectives[0].bus_bytes_per_s, 1e9 / collectives[0].cost.seconds() * 15 / 16);
    EXPECT_EQ(collectives[1].count, 6U);
    EXPECT_EQ(collectives[1].ranks, 16U);
}

TEST(StepCollectives, RunAsTheClusterForcesWhereTheyCan) {
    ClusterSpec cluster = test::test_cluster(2);
    cluster.nccl.protocol = CollectiveProtocol::ll;
    Collective sum = all_gather(500'000'000);
    sum.kind = CollectiveKind::all_reduce;
    EXPECT_EQ(step_collectives(plan_of({on(Stream::reduce, sum)}, cluster), 0)[0].cost.protocol,
              CollectiveProtocol::ll);
    cluster.nccl = {CollectiveAlgorithm::tree, std::nullopt};
    const Plan both =
        plan_of({on(Stream::reduce, sum), on(Stream::gather, all_gather(500'000'000))}, cluster);
    for (const StepCollective& c : step_collectives(both, 0))
        EXPECT_EQ(c.cost.algorithm,
                  c.kind == "all_reduce" ? CollectiveAlgorithm::tree : CollectiveAlgorithm::ring);
    EXPECT_TRUE(forced_choice_warnings(both).empty());
    EXPECT_EQ(forced_choice_warnings(plan_of({on(Stream::gather, all_gather(1000))}, cluster)).size(), 1U);
}

TEST(LinkLoadOverTime, GoesOnWhereTheTimeLineLeavesRepetitionsOut) {
    const Plan plan = test::test_plan(test::test_cluster(2),
                                      {{"step", 100, {on(Stream::gather, all_gather(64'000'000))}}}, {});
    const StepTimeline step = closed_form_step(plan);
    const auto points = link_load_over_time(plan, 0, step);
    double nic = 0;
    for (std::size_t i = 0; i + 1 < points.size(); ++i)
        nic += (points[i + 1].time_s - points[i].time_s) * points[i].nic_bytes_per_s;
    const StepCollective all = step_collectives(plan, 0).front();
    EXPECT_NEAR(nic, 100 * all.cost.nic_weight * all.cost.unit_bytes, 1e-6 * nic);
}

TEST(LinkLoadOverTime, HasTheAreaOfWhatIsCarried) {
    const Plan plan =
        plan_of({on(Stream::gather, all_gather(64'000'000)), on(Stream::reduce, reduce_scatter(32'000'000))});
    const StepTimeline step = closed_form_step(plan);
    const auto points = link_load_over_time(plan, 0, step);
    double nic = 0, intra = 0;
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
        const double seconds = points[i + 1].time_s - points[i].time_s;
        EXPECT_GT(seconds, 0);
        nic += seconds * points[i].nic_bytes_per_s;
        intra += seconds * points[i].intra_node_bytes_per_s;
    }
    double nic_carried = 0, intra_carried = 0;
    for (const StepCollective& c : step_collectives(plan, 0)) {
        nic_carried += static_cast<double>(c.count) * c.cost.nic_weight * c.cost.unit_bytes;
        intra_carried += static_cast<double>(c.count) * c.cost.intra_weight * c.cost.unit_bytes;
    }
    EXPECT_NEAR(nic, nic_carried, 1e-9 * nic_carried);
    EXPECT_NEAR(intra, intra_carried, 1e-9 * intra_carried);
    EXPECT_EQ(points.back().nic_bytes_per_s, 0);
}

}  // namespace
}  // namespace zeroplan
