#include "zeroplan/simulate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/cost/pipeline_plan.hpp"
#include "core/cost/random_program.hpp"
#include "core/cost/tiny_plan.hpp"
#include "sim/sharded_step.hpp"
#include "zeroplan/collective_cost.hpp"

namespace zeroplan {
namespace {

using test::all_gather;
using test::host;
using test::on;
using test::random_operations;
using test::reduce_scatter;
using test::sharded_step;
using test::work;
using test::work_buffers;

CollectiveCost cost_of(const Plan& plan, const Collective& c) {
    const ClusterSpec& cluster = plan.scenario.cluster;
    return collective_cost(c.kind, Bytes{2 * c.elements},
                           group_placement(c.group, plan.layout.shard_group, cluster), cluster);
}

void expect_equal_times(const StepTimeline& a, const StepTimeline& b, double tolerance) {
    ASSERT_EQ(a.operations.size(), b.operations.size());
    const double scale = std::max(a.step_time_s, 1e-12);
    EXPECT_NEAR(a.step_time_s / scale, b.step_time_s / scale, tolerance);
    EXPECT_NEAR(a.compute_s / scale, b.compute_s / scale, tolerance);
    EXPECT_NEAR(a.communication_s / scale, b.communication_s / scale, tolerance);
    EXPECT_NEAR(a.exposed_communication_s / scale, b.exposed_communication_s / scale, tolerance);
    EXPECT_NEAR(a.bubble_s / scale, b.bubble_s / scale, tolerance);
    for (std::size_t i = 0; i < a.operations.size(); ++i) {
        ASSERT_NEAR(a.operations[i].start_s / scale, b.operations[i].start_s / scale, tolerance) << i;
        ASSERT_NEAR(a.operations[i].end_s / scale, b.operations[i].end_s / scale, tolerance) << i;
    }
}

TEST(Simulate, EqualsTheClosedFormOnOneCommunicationStream) {
    for (const std::uint64_t ranks : {2U, 4U, 8U, 16U, 64U, 256U, 1024U, 4096U, 16384U}) {
        ClusterSpec cluster = test::test_cluster(std::max<std::uint64_t>(1, ranks / 8));
        cluster.gpus_used = ranks;
        for (const std::uint64_t elements : {16384U, 1'048'576U, 134'217'728U}) {
            const Plan plan = test::test_plan(
                cluster, {{"micro_batch", 3, sharded_step(12, elements, Stream::gather, elements)}},
                work_buffers);
            SCOPED_TRACE(std::to_string(ranks) + " ranks, " + std::to_string(elements) + " elements");
            const SimReport report = simulate(plan);
            expect_equal_times(report.rank_groups[0], report.closed_form, 1e-9);
        }
    }
}

TEST(Simulate, EqualsTheClosedFormWhereStreamsShareNoLink) {
    // Shard groups stay in a node (NVLink), replicas have one rank a node (NIC).
    Plan plan = test::test_plan(test::test_cluster(64), {}, work_buffers);
    plan.layout.shard_group = 8;
    std::vector<Operation> operations = sharded_step(12, 50'000'000, Stream::reduce, 50'000'000);
    for (Operation& operation : operations)
        if (auto* c = std::get_if<Collective>(&operation.body);
            c != nullptr && operation.stream == Stream::reduce)
            c->group = GroupKind::replica_group;
    plan.programs[0].step = {{"step", 1, operations}};
    const SimReport report = simulate(plan);
    expect_equal_times(report.rank_groups[0], report.closed_form, 1e-9);
    ASSERT_EQ(report.links.size(), 2U);
}

TEST(Simulate, EqualsTheClosedFormOnRandomPrograms) {
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        std::mt19937 random(seed);
        const Plan plan = test::test_plan(test::test_cluster(2),
                                          {{"a", 1 + seed % 3, random_operations(random, Stream::gather)},
                                           {"b", 1, random_operations(random, Stream::gather)}},
                                          work_buffers);
        SCOPED_TRACE(seed);
        const SimReport report = simulate(plan);
        expect_equal_times(report.rank_groups[0], report.closed_form, 1e-9);
    }
}

TEST(Simulate, EqualsTheClosedFormWhereTheHostTakesPart) {
    ClusterSpec cluster = test::test_cluster(2);
    cluster.host.dram_bytes_per_s = 400e9;
    const auto copy = [](CopyPath path) { return HostCopy{.path = path, .bytes = 3'000'000'000}; };
    const std::vector<Operation> operations{on(Stream::compute, work(40'000'000)),
                                            on(Stream::reduce, reduce_scatter(20'000'000), {0}),
                                            on(Stream::to_host, copy(CopyPath::to_host), {1}),
                                            on(Stream::compute, work(60'000'000)),
                                            on(Stream::host, HostStep{.bytes = 5'000'000'000}, {2}),
                                            on(Stream::to_device, copy(CopyPath::to_device), {4, 3}),
                                            on(Stream::compute, work(10'000'000), {5}),
                                            host(Wait{}, {6})};
    const Plan plan = test::test_plan(cluster, {{"step", 3, operations}}, work_buffers);
    const SimReport report = simulate(plan);
    expect_equal_times(report.rank_groups[0], report.closed_form, 1e-9);
    EXPECT_NEAR(report.rank_groups[0].exposed_offload_s / report.closed_form.exposed_offload_s, 1, 1e-9);
    EXPECT_GT(report.closed_form.exposed_offload_s, 0);
}

TEST(Simulate, EqualsTheClosedFormOnAPipeline) {
    for (const std::uint64_t message : {0U, 1'000'000U, 100'000'000U}) {
        const Plan plan = test::pipeline_plan({1, 3, 2, 1}, 12, 10'000'000, message);
        const SimReport report = simulate(plan);
        const std::vector<StepTimeline> closed = closed_form_steps(plan);
        for (std::size_t stage = 0; stage < 4; ++stage)
            expect_equal_times(report.rank_groups[stage], closed[stage], 1e-9);
    }
}

TEST(Simulate, ContinuesLongRepetitionsAsTheClosedFormDoes) {
    const Plan plan = test::test_plan(
        test::test_cluster(2),
        {{"micro_batch", 1'000'000, sharded_step(4, 50'000'000, Stream::gather, 50'000'000)}}, work_buffers);
    const SimReport report = simulate(plan);
    expect_equal_times(report.rank_groups[0], report.closed_form, 1e-9);
}

TEST(Simulate, RunsWithoutAnyCommunication) {
    const Plan plan = test::test_plan(test::test_cluster(1, 1),
                                      {{"step", 2, {on(Stream::compute, work(1000))}}}, work_buffers);
    const SimReport report = simulate(plan);
    expect_equal_times(report.rank_groups[0], report.closed_form, 1e-12);
    EXPECT_TRUE(report.links.empty());
}

TEST(Simulate, AnEmptyStepTakesNoTime) {
    const SimReport report =
        simulate(test::test_plan(test::test_cluster(1), {{"step", 1, {}}}, work_buffers));
    EXPECT_EQ(report.rank_groups[0].step_time_s, 0);
}

TEST(Simulate, TwoFlowsShareANic) {
    // Gather and reduce-scatter of the same size at once over 2 nodes: each alone is held to 48 GB/s a rail
    // by NCCL's channels; together they want 96 of the NIC's 50 GB/s and get 25 each until both end.
    const std::uint64_t elements = 4'000'000'000;
    const Plan plan = test::test_plan(
        test::test_cluster(2),
        {{"step",
          1,
          {on(Stream::gather, all_gather(elements)), on(Stream::reduce, reduce_scatter(elements))}}},
        work_buffers);
    const CollectiveCost cost = cost_of(plan, all_gather(elements));
    const SimReport report = simulate(plan);
    EXPECT_NEAR(report.rank_groups[0].step_time_s, cost.start_s() + 2 * cost.unit_bytes / 50e9, 1e-9);
    EXPECT_NEAR(report.closed_form.step_time_s, cost.start_s() + cost.unit_bytes / 48e9, 1e-9);
    // All that the law says has been carried, and the NIC was busy whenever something flowed.
    const LinkLoad& nic = report.links[1];
    EXPECT_EQ(nic.name, "nic");
    EXPECT_NEAR(nic.bytes, 2 * 8e9 * 15 / 16 / 8, 1);
    EXPECT_NEAR(nic.bytes / nic.bytes_per_s, report.rank_groups[0].step_time_s - cost.start_s(), 1e-9);
    EXPECT_NEAR(report.links[0].bytes, 2 * 8e9 * 15 / 16 * 7 / 8, 1);
}

TEST(Simulate, TheLongerFlowSpeedsUpWhenTheShorterHasEnded) {
    // Rail: A carries a = 0.9375 GB, B twice as much. A starts first and flows alone at 48 GB/s; then
    // both at 25 GB/s until A ends; then B alone at 48 GB/s.
    const std::uint64_t elements = 4'000'000'000;
    const Plan plan = test::test_plan(
        test::test_cluster(2),
        {{"step",
          1,
          {on(Stream::gather, all_gather(elements)), on(Stream::reduce, reduce_scatter(2 * elements))}}},
        work_buffers);
    const CollectiveCost a = cost_of(plan, all_gather(elements));
    const CollectiveCost b = cost_of(plan, reduce_scatter(2 * elements));
    ASSERT_LT(a.start_s(), b.start_s());
    const double a_end = b.start_s() + (a.unit_bytes - 48e9 * (b.start_s() - a.start_s())) / 25e9;
    const double b_end = a_end + (b.unit_bytes - 25e9 * (a_end - b.start_s())) / 48e9;
    const SimReport report = simulate(plan);
    const auto& operations = report.rank_groups[0].operations;
    EXPECT_NEAR(operations[0].end_s, a_end, 1e-9);
    EXPECT_NEAR(operations[1].end_s, b_end, 1e-9);
}

TEST(Simulate, ContentionOnlyEverSlowsDown) {
    const Plan plan = test::test_plan(test::test_cluster(16),
                                      {{"step", 1, sharded_step(20, 134'217'728, Stream::reduce, 1'000'000)}},
                                      work_buffers);
    const SimReport report = simulate(plan);
    EXPECT_GT(report.rank_groups[0].step_time_s, report.closed_form.step_time_s * (1 + 1e-6));
    EXPECT_LT(report.rank_groups[0].step_time_s, report.closed_form.step_time_s * 2);
    EXPECT_GT(report.rank_groups[0].high_s, report.rank_groups[0].step_time_s);
    for (const LinkLoad& load : report.links) EXPECT_LE(load.utilisation, 1 + 1e-9) << load.name;
}

TEST(Simulate, RankGroupsMeetInTheirCollectives) {
    // The second group computes longer; the first one's next collective has to wait for it.
    Plan plan = test::test_plan(test::test_cluster(2), {}, work_buffers);
    const auto program = [](std::uint64_t elements) {
        return std::vector<Section>{
            {"step",
             1,
             {on(Stream::compute, work(elements)), on(Stream::reduce, reduce_scatter(64'000'000), {0}),
              on(Stream::compute, work(1000), {1})}}};
    };
    plan.programs[0].step = program(1'000'000);
    plan.programs.push_back({work_buffers, {}, {}, {}, program(5'000'000'000)});
    plan.rank_groups.push_back({.ranks = {{8, 15}}, .program = 1});
    plan.rank_groups[0].ranks = {{0, 7}};
    const SimReport report = simulate(plan);
    const double slow = report.rank_groups[1].operations[0].end_s;
    EXPECT_DOUBLE_EQ(report.rank_groups[0].operations[1].start_s, slow);
    EXPECT_DOUBLE_EQ(report.rank_groups[0].step_time_s, report.rank_groups[1].step_time_s);
    EXPECT_GT(report.rank_groups[0].bubble_s, 0);
}

TEST(Simulate, RefusesRankGroupsWithDifferentCollectives) {
    Plan plan = test::test_plan(test::test_cluster(2), {{"step", 1, {on(Stream::gather, all_gather(1000))}}},
                                work_buffers);
    plan.programs.push_back(
        {work_buffers, {}, {}, {}, {{"step", 1, {on(Stream::gather, all_gather(2000))}}}});
    plan.rank_groups.push_back({.ranks = {{8, 15}}, .program = 1});
    EXPECT_THROW(simulate(plan), Error);
}

TEST(Simulate, ReportsProgress) {
    const Plan plan =
        test::test_plan(test::test_cluster(2),
                        {{"step", 1, sharded_step(20, 1'000'000, Stream::reduce, 1'000'000)}}, work_buffers);
    std::vector<double> shares;
    simulate(plan, {[&shares](double share) { shares.push_back(share); }});
    ASSERT_FALSE(shares.empty());
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_LE(shares.back(), 1);
}

}  // namespace
}  // namespace zeroplan
