#include "zeroplan/what_if.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/cost/pipeline_plan.hpp"
#include "core/cost/random_program.hpp"
#include "core/cost/tiny_plan.hpp"
#include "sim/sharded_step.hpp"
#include "zeroplan/rank_classes.hpp"
#include "zeroplan/simulate.hpp"

namespace zeroplan {
namespace {

using test::all_gather;
using test::on;
using test::reduce_scatter;
using test::sharded_step;
using test::work;
using test::work_buffers;

Plan plan_of(std::vector<Operation> operations, std::uint64_t nodes = 2, std::uint64_t repeat = 1) {
    return test::test_plan(test::test_cluster(nodes), {{"step", repeat, std::move(operations)}},
                           work_buffers);
}

WhatIf stragglers(std::vector<Straggler> list) {
    WhatIf what_if;
    what_if.stragglers = std::move(list);
    return what_if;
}
WhatIf slow_links(std::vector<SlowLink> list) {
    WhatIf what_if;
    what_if.slow_links = std::move(list);
    return what_if;
}

WhatIfStep simulated(const Plan& plan, const WhatIf& what_if) {
    return simulate(split_rank_groups(plan, rank_classes(plan, what_if)), what_if);
}

double step_time(const Plan& plan, const WhatIf& what_if = {}) {
    double slowest = 0;
    for (const StepTimeline& group : simulated(plan, what_if).step.rank_groups)
        slowest = std::max(slowest, group.step_time_s);
    return slowest;
}

/// Shard groups of a node, replicas over nodes.
Plan hybrid_plan() {
    std::vector<Operation> operations = sharded_step(6, 20'000'000, Stream::reduce, 40'000'000);
    for (Operation& operation : operations)
        if (auto* c = std::get_if<Collective>(&operation.body);
            c != nullptr && operation.stream == Stream::reduce)
            c->group = GroupKind::replica_group;
    Plan plan = plan_of(std::move(operations), 3);
    plan.layout.shard_group = 8;
    return plan;
}

/// Plans whose streams share no link, and whose collectives take nothing of the GPU: there, nothing gets
/// faster when something else gets slower.
std::vector<Plan> uncontended_plans() {
    std::vector<Plan> plans{plan_of(sharded_step(8, 30'000'000, Stream::gather, 60'000'000), 4, 3),
                            hybrid_plan(), test::pipeline_plan({1, 2, 1}, 8, 10'000'000, 5'000'000)};
    for (std::uint32_t seed = 0; seed < 8; ++seed) {
        std::mt19937 random(seed);
        plans.push_back(plan_of(test::random_operations(random, Stream::gather)));
    }
    for (Plan& plan : plans) plan.scenario.cluster.calibration.constants = test::nothing_taken();
    return plans;
}

std::vector<Plan> some_plans() {
    std::vector<Plan> plans{
        plan_of(sharded_step(8, 30'000'000, Stream::gather, 60'000'000), 4, 3),
        plan_of(sharded_step(8, 134'217'728, Stream::reduce, 10'000'000), 4),
        hybrid_plan(),
        test::pipeline_plan({1, 2, 1}, 8, 10'000'000, 5'000'000),
    };
    for (std::uint32_t seed = 0; seed < 5; ++seed) {
        std::mt19937 random(seed);
        plans.push_back(plan_of(test::random_operations(random, Stream::reduce)));
    }
    return plans;
}

TEST(Straggler, OfFactorOneChangesNothing) {
    for (const Plan& plan : some_plans()) {
        const double without = step_time(plan);
        EXPECT_NEAR(step_time(plan, stragglers({{5, 1}, {9, 1}})), without, 1e-12 * without);
        EXPECT_NEAR(step_time(plan, slow_links({{SlowLinkKind::nic, 5, 1}, {SlowLinkKind::node, 0, 1}})),
                    without, 1e-12 * without);
    }
}

TEST(Straggler, MakesAComputeBoundStepAsLongAsItsWork) {
    // 0.3 s or so of work, then a reduce-scatter that everybody has to be there for.
    const Plan plan = plan_of(
        {on(Stream::compute, work(5'000'000'000)), on(Stream::reduce, reduce_scatter(64'000'000), {0})});
    const SimReport whole = simulate(plan);
    const auto& operations = whole.rank_groups[0].operations;
    const double compute = operations[0].end_s, reduce = operations[1].end_s - operations[1].start_s;
    const WhatIfStep slow = simulated(plan, stragglers({{5, 0.8}}));
    for (const StepTimeline& group : slow.step.rank_groups)
        EXPECT_NEAR(group.step_time_s, compute / 0.8 + reduce, 1e-12);
    ASSERT_EQ(slow.step.rank_groups.size(), 2U);  // the others, then rank 5
    EXPECT_NEAR(slow.step.rank_groups[0].bubble_s, compute / 0.8 - compute, 1e-12);
    EXPECT_NEAR(slow.step.rank_groups[1].bubble_s, 0, 1e-12);
    EXPECT_NEAR(slow.step.rank_groups[1].compute_s, compute / 0.8, 1e-12);

    const WhatIfReport& report = slow.what_if;
    EXPECT_NEAR(report.step_time_without_s, compute + reduce, 1e-12);
    ASSERT_EQ(report.causes.size(), 1U);
    EXPECT_EQ(report.causes[0].cause, "rank 5 computes at 0.8 of its speed");
    EXPECT_NEAR(report.causes[0].added_s, compute / 4, 1e-12);
    EXPECT_NEAR(report.causes[0].added_idle_s, compute / 4 * 15 / 16, 1e-12);
    ASSERT_TRUE(report.waited_for);
    EXPECT_EQ(to_string(report.waited_for->ranks), "5");
    EXPECT_EQ(report.waited_for->last_of, 1U);
    EXPECT_EQ(report.waited_for->collectives, 1U);
    EXPECT_NEAR(report.waited_for->waiting_s, compute / 4, 1e-12);
}

TEST(Straggler, EqualsTheClosedFormOnOneCommunicationStream) {
    for (std::uint32_t seed = 0; seed < 10; ++seed) {
        std::mt19937 random(seed);
        const Plan plan = plan_of(test::random_operations(random, Stream::gather), 2, 1 + seed % 3);
        WhatIf what_if = stragglers({{5, 0.7}, {12, 0.9}});
        what_if.slow_links = {{SlowLinkKind::nic, 3, 0.6}};
        const WhatIfStep report = simulated(plan, what_if);
        SCOPED_TRACE(seed);
        const double reference = report.step.closed_form.step_time_s;
        EXPECT_NEAR(report.what_if.causes.back().step_time_s, reference, 1e-9 * reference);
    }
}

TEST(Straggler, NeverSpeedsUpAndCostsMoreTheSlowerItIs) {
    std::vector<Plan> plans = uncontended_plans();
    for (Plan plan : uncontended_plans()) {
        plan.scenario.cluster.calibration.constants.clear();
        plans.push_back(plan);
    }
    for (const Plan& plan : plans) {
        double before = step_time(plan);
        for (const double factor : {0.99, 0.8, 0.5, 0.1}) {
            const double now = step_time(plan, stragglers({{9, factor}}));
            EXPECT_GE(now, before * (1 - 1e-9)) << factor;
            before = now;
        }
    }
}

TEST(Straggler, IsTheSameWhereverSymmetryPutsIt) {
    const Plan sharded = plan_of(sharded_step(8, 30'000'000, Stream::reduce, 60'000'000), 4);
    const double one = step_time(sharded, stragglers({{0, 0.8}}));
    EXPECT_NEAR(step_time(sharded, stragglers({{29, 0.8}})), one, 1e-12 * one);
    const double two = step_time(sharded, stragglers({{1, 0.8}, {9, 0.8}}));
    EXPECT_NEAR(two, one, 1e-9 * one);  // everybody waits for either of them
    const Plan hybrid = hybrid_plan();
    const double first = step_time(hybrid, stragglers({{0, 0.8}}));
    EXPECT_NEAR(step_time(hybrid, stragglers({{23, 0.8}})), first, 1e-12 * first);
}

TEST(RankClassesOfAWhatIf, AreAsGoodAsOneClassARank) {
    // Factors that differ by less than anybody can see put each rank into a class of its own.
    for (const Plan& plan : some_plans()) {
        WhatIf coarse = stragglers({{9, 0.7}});
        coarse.slow_links = {{SlowLinkKind::nic, 2, 0.5}};
        WhatIf fine = coarse;
        for (std::uint64_t rank = 0; rank < plan.scenario.world_size(); ++rank)
            if (rank != 9) fine.stragglers.push_back({rank, 1 - 1e-14 * static_cast<double>(rank + 1)});
        EXPECT_EQ(rank_classes(plan, fine).classes.size(), plan.scenario.world_size());
        const double expected = step_time(plan, coarse);
        const WhatIf no_steps_between = fine;
        EXPECT_NEAR(step_time(plan, no_steps_between), expected, 1e-9 * expected);
    }
}

TEST(SlowLink, HoldsBackTheWholeRing) {
    // 8 GB over 2 nodes: 0.9375 GB a NIC, 48 GB/s by NCCL's channels, 25 GB/s at half a NIC's rate.
    const Plan plan = plan_of({on(Stream::gather, all_gather(4'000'000'000))});
    const ClusterSpec& cluster = plan.scenario.cluster;
    const CollectiveCost cost =
        on_slow_links(collective_cost(CollectiveKind::all_gather, Bytes{8'000'000'000},
                                      group_placement(GroupKind::shard_group, 16, cluster), cluster),
                      link_rates(cluster), 1, 0.5);
    const double expected = cost.start_s() + 0.9375 / 25;
    EXPECT_NEAR(step_time(plan, slow_links({{SlowLinkKind::nic, 3, 0.5}})), expected, 1e-9);
    EXPECT_NEAR(step_time(plan, slow_links({{SlowLinkKind::node, 1, 0.5}})), expected, 1e-9);
    const WhatIfStep report = simulated(plan, slow_links({{SlowLinkKind::nic, 3, 0.5}}));
    ASSERT_EQ(report.step.links.size(), 3U);
    EXPECT_EQ(report.step.links[1].name, "nic");
    EXPECT_EQ(report.step.links[1].links, 15U);
    EXPECT_EQ(report.step.links[2].name, "nic at 0.5");
    EXPECT_EQ(report.step.links[2].links, 1U);
    EXPECT_DOUBLE_EQ(report.step.links[2].bytes_per_s, 25e9);
    EXPECT_NEAR(report.step.links[2].utilisation, 2 * report.step.links[1].utilisation, 1e-12);
    EXPECT_NEAR(report.what_if.causes[0].added_exposed_communication_s, report.what_if.causes[0].added_s,
                1e-12);
}

TEST(SlowLink, LeavesCommunicatorsAloneThatDoNotCrossIt) {
    // Shard groups inside nodes, nothing between them: the other nodes' steps are what they were.
    Plan plan = plan_of(sharded_step(6, 20'000'000, Stream::gather, 1000), 3);
    plan.layout.shard_group = 8;
    const double without = step_time(plan);
    const WhatIf slow = slow_links({{SlowLinkKind::gpu, 9, 0.25}});
    const WhatIfStep report = simulated(plan, slow);
    ASSERT_EQ(report.step.rank_groups.size(), 3U);  // elsewhere; rank 9's node; rank 9
    EXPECT_NEAR(report.step.rank_groups[0].step_time_s, without, 1e-12 * without);
    EXPECT_GT(report.step.rank_groups[1].step_time_s, 1.5 * without);
    EXPECT_NEAR(report.step.rank_groups[1].step_time_s, report.step.rank_groups[2].step_time_s, 1e-12);
    EXPECT_EQ(step_time(plan, slow_links({{SlowLinkKind::node, 0, 0.1}})), without);
}

void expect_slower_the_slower_a_link(const Plan& plan) {
    for (const SlowLinkKind kind : {SlowLinkKind::nic, SlowLinkKind::gpu, SlowLinkKind::node}) {
        double before = step_time(plan);
        for (const double factor : {0.9, 0.5, 0.2, 0.01}) {
            const double now = step_time(plan, slow_links({{kind, 1, factor}}));
            EXPECT_GE(now, before * (1 - 1e-9)) << factor;
            before = now;
        }
    }
}

TEST(SlowLink, NeverSpeedsUpAndCostsMoreTheSlowerItIs) {
    for (const Plan& plan : uncontended_plans()) expect_slower_the_slower_a_link(plan);
}

/// A slow link lets a collective take less of the GPU at a time: a step gains at most what it had lost to
/// that.
TEST(SlowLink, GivesBackAtMostWhatTheCollectivesTook) {
    for (Plan plan : uncontended_plans()) {
        plan.scenario.cluster.calibration.constants.clear();
        const SimReport before = simulated(plan, {}).step;
        double step_s = 0, slowed_s = 0;
        for (const StepTimeline& group : before.rank_groups) {
            step_s = std::max(step_s, group.step_time_s);
            slowed_s = std::max(slowed_s, group.slowed_s);
        }
        for (const SlowLinkKind kind : {SlowLinkKind::nic, SlowLinkKind::gpu, SlowLinkKind::node})
            for (const double factor : {0.9, 0.5, 0.2, 0.01})
                EXPECT_GE(step_time(plan, slow_links({{kind, 1, factor}})), (step_s - slowed_s) * (1 - 1e-9));
    }
}

/// Multiprocessors are taken for as long as a collective runs: as far as they go, nothing is given back.
TEST(SlowLink, NeverSpeedsUpWhereOnlyMultiprocessorsAreTaken) {
    for (Plan plan : uncontended_plans()) {
        plan.scenario.cluster.calibration.constants = {{"gather_memory_accesses", 0},
                                                       {"reduce_memory_accesses", 0}};
        expect_slower_the_slower_a_link(plan);
    }
}

TEST(WhatIf, CausesAddUpToTheStep) {
    const Plan plan = plan_of(sharded_step(8, 30'000'000, Stream::reduce, 60'000'000), 4, 40);
    WhatIf what_if = stragglers({{3, 0.9}, {17, 0.8}});
    what_if.slow_links = {{SlowLinkKind::gpu, 8, 0.1}, {SlowLinkKind::node, 2, 0.2}};
    const WhatIfReport report = simulated(plan, what_if).what_if;
    ASSERT_EQ(report.causes.size(), 4U);
    double sum = report.step_time_without_s;
    for (const StepCause& cause : report.causes) {
        EXPECT_GE(cause.added_s, -1e-12);
        sum += cause.added_s;
        EXPECT_NEAR(cause.step_time_s, sum, 1e-9);
    }
    EXPECT_EQ(report.asked, what_if);
}

TEST(WhatIf, WaitingStandsForRepetitionsThatAreNotSimulated) {
    // 40 alike micro-batches, of which 16 are simulated: each waits for rank 5 once.
    const Plan plan =
        plan_of({on(Stream::compute, work(50'000'000)), on(Stream::reduce, reduce_scatter(1'000'000), {0}),
                 on(Stream::compute, work(1000), {1})},
                2, 40);
    const WhatIfReport report = simulated(plan, stragglers({{5, 0.5}})).what_if;
    ASSERT_TRUE(report.waited_for);
    EXPECT_EQ(report.waited_for->collectives, 40U);
    EXPECT_EQ(report.waited_for->last_of, 40U);
    EXPECT_NEAR(report.waited_for->waiting_s, report.causes[0].added_s, 0.02 * report.causes[0].added_s);
}

}  // namespace
}  // namespace zeroplan
