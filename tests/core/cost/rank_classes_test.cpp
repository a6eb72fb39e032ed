#include "zeroplan/rank_classes.hpp"

#include <gtest/gtest.h>

#include "core/cost/pipeline_plan.hpp"
#include "core/cost/random_program.hpp"
#include "core/cost/tiny_plan.hpp"
#include "cost/constants.hpp"

namespace zeroplan {
namespace {

using test::all_gather;
using test::on;
using test::work;
using test::work_buffers;

/// Every rank meets all others of its shard group.
Plan data_parallel(std::uint64_t nodes,
                   std::vector<Operation> operations = {on(Stream::gather, all_gather(1000))}) {
    return test::test_plan(test::test_cluster(nodes), {{"step", 1, std::move(operations)}}, work_buffers);
}

WhatIf straggler(std::uint64_t rank, double factor) {
    WhatIf what_if;
    what_if.stragglers = {{rank, factor}};
    return what_if;
}

std::vector<std::string> ranks_of(const RankClasses& classes) {
    std::vector<std::string> result;
    for (const AlikeRanks& one : classes.classes) result.push_back(to_string(one.ranks));
    return result;
}
using Ranks = std::vector<std::string>;

TEST(RankClasses, AllRanksAreAlikeWhereAllIsWell) {
    EXPECT_EQ(ranks_of(rank_classes(data_parallel(128))), Ranks{"0-1023"});
}

TEST(RankClasses, AStragglerOfDataParallelRanksIsAClassOfItsOwn) {
    const RankClasses classes = rank_classes(data_parallel(2), straggler(5, 0.8));
    EXPECT_EQ(ranks_of(classes), (Ranks{"0-4,6-15", "5"}));
    EXPECT_EQ(classes.classes[1].compute_factor, 0.8);
    EXPECT_EQ(classes.class_of(5), 1U);
    EXPECT_EQ(classes.class_of(6), 0U);
    const auto shard_group = static_cast<std::size_t>(GroupKind::shard_group);
    EXPECT_EQ(classes.classes[0].communicator[shard_group], classes.classes[1].communicator[shard_group]);
}

TEST(RankClasses, AFactorOfOneBreaksNoSymmetry) {
    EXPECT_EQ(rank_classes(data_parallel(2), straggler(5, 1)), rank_classes(data_parallel(2)));
}

TEST(RankClasses, ShardGroupAndReplicasOfAStragglerAreApart) {
    // Two replicas of a shard group of 8: rank 5 shards with 0 to 7 and has its replica in 13.
    Plan plan = data_parallel(2, {on(Stream::gather, all_gather(1000)),
                                  on(Stream::reduce, all_gather(1000, GroupKind::replica_group))});
    plan.layout.shard_group = 8;
    EXPECT_EQ(ranks_of(rank_classes(plan, straggler(5, 0.8))), (Ranks{"0-4,6-7", "5", "8-12,14-15", "13"}));
    // Without a collective between replicas the other group has nothing to do with it.
    plan.programs[0].step[0].operations.pop_back();
    EXPECT_EQ(ranks_of(rank_classes(plan, straggler(5, 0.8))), (Ranks{"0-4,6-7", "5", "8-15"}));
}

TEST(RankClasses, NeighboursOfASlowStageAreApart) {
    const Plan plan = test::pipeline_plan({1, 1, 1}, 4, 1000, 1000);
    const RankClasses classes = rank_classes(plan, straggler(9, 0.5));
    // Rank 9 has rank 1 before it and rank 17 behind it, and its stage has no collectives.
    EXPECT_EQ(ranks_of(classes), (Ranks{"0,2-7", "1", "8,10-15", "9", "16,18-23", "17"}));
    EXPECT_EQ(classes.classes[3].previous_stage, 1U);
    EXPECT_EQ(classes.classes[3].next_stage, 5U);
}

TEST(RankClasses, CopiesOfAnEmbeddingMeetAcrossStages) {
    const auto embedding = static_cast<std::size_t>(GroupKind::embedding_group);
    // Three stages of 8 ranks, a node each.
    const Plan plan = test::tied_pipeline_plan({1, 1, 1}, 4, 1000, 1000);
    const RankClasses alike = rank_classes(plan);
    ASSERT_EQ(ranks_of(alike), (Ranks{"0-7", "8-15", "16-23"}));
    const std::uint32_t shared = alike.classes[0].communicator[embedding];
    EXPECT_EQ(alike.classes[2].communicator[embedding], shared);
    EXPECT_EQ(alike.communicators[shared].classes, (std::vector<std::uint32_t>{0, 2}));
    EXPECT_NE(alike.classes[1].communicator[embedding], shared);

    // The NIC of rank 17 holds back rank 1, too.
    WhatIf what_if;
    what_if.slow_links = {{SlowLinkKind::nic, 17, 0.5}};
    const RankClasses slow = rank_classes(plan, what_if);
    const AlikeRanks& first = slow.classes[slow.class_of(1)];
    EXPECT_EQ(first.count(), 1U);
    EXPECT_EQ(first.communicator[embedding], slow.classes[slow.class_of(17)].communicator[embedding]);
    EXPECT_EQ(slow.communicators[first.communicator[embedding]].least_nic_factor, 0.5);
    EXPECT_NE(slow.classes[slow.class_of(0)].communicator[embedding], first.communicator[embedding]);
}

TEST(RankClasses, ANodeHasSlowNicsAndWholeGpuLinks) {
    WhatIf what_if;
    what_if.slow_links = {
        {SlowLinkKind::node, 1, 0.5}, {SlowLinkKind::nic, 9, 0.5}, {SlowLinkKind::gpu, 0, 0.25}};
    const RankClasses classes = rank_classes(data_parallel(3), what_if);
    EXPECT_EQ(ranks_of(classes), (Ranks{"0", "1-7,16-23", "8,10-15", "9"}));
    EXPECT_EQ(classes.classes[0].gpu_link_factor, 0.25);
    EXPECT_EQ(classes.classes[2].nic_factor, 0.5);
    EXPECT_EQ(classes.classes[3].nic_factor, 0.25);
    const ClassCommunicator& world = classes.communicators[classes.classes[0].communicator[0]];
    EXPECT_EQ(world.least_gpu_link_factor, 0.25);
    EXPECT_EQ(world.least_nic_factor, 0.25);
}

TEST(SplitRankGroups, KeepsTheFullestRank) {
    Plan plan = data_parallel(2);
    plan.memory.peak_rank = 5;
    const Plan split = split_rank_groups(plan, rank_classes(plan, straggler(5, 0.8)));
    ASSERT_EQ(split.rank_groups.size(), 2U);
    EXPECT_EQ(to_string(split.rank_groups[0].ranks), "0-4,6-15");
    EXPECT_EQ(to_string(split.rank_groups[1].ranks), "5");
    EXPECT_EQ(split.memory.worst_group, 1U);
}

TEST(SlowLinks, HoldBackTheFlowAndItsOverheadInProportion) {
    const ClusterSpec cluster = test::test_cluster(2);
    const CollectiveCost whole =
        collective_cost(CollectiveKind::all_gather, Bytes{8'000'000'000},
                        group_placement(GroupKind::shard_group, 16, cluster), cluster);
    const LinkRates rates = link_rates(cluster);
    EXPECT_EQ(on_slow_links(whole, rates, 1, 1), whole);
    // A NIC carries 8 GB · 15/16 / 8 rails = 0.9375 GB: alone at 48 GB/s (NCCL's channels), now at 25 GB/s.
    const CollectiveCost slow = on_slow_links(whole, rates, 1, 0.5);
    EXPECT_NEAR(whole.transfer_s, 0.9375 / 48, 1e-12);
    EXPECT_NEAR(slow.transfer_s, 0.9375 / 25, 1e-12);
    const double reached = cost::constants({}).network_payload.value;
    EXPECT_NEAR(slow.overhead_s - whole.overhead_s, (0.9375 / 25 - 0.9375 / 48) * (1 / reached - 1), 1e-12);
    EXPECT_EQ(slow.latency_s, whole.latency_s);
    // At 0.97 of 50 GB/s it still is no slower than the channels.
    EXPECT_EQ(on_slow_links(whole, rates, 1, 0.97), whole);
}

TEST(AsClass, WorkTakesLongerAndCollectivesDoNot) {
    const Plan plan = data_parallel(
        2, {on(Stream::compute, work(50'000'000)), on(Stream::gather, all_gather(64'000'000), {0})});
    const RankClasses classes = rank_classes(plan, straggler(5, 0.8));
    const TimedProgram whole = time_program(plan, 0);
    const LinkRates rates = link_rates(plan.scenario.cluster);
    EXPECT_EQ(as_class(whole, classes, 0, rates), whole);
    const TimedProgram slow = as_class(whole, classes, 1, rates);
    EXPECT_DOUBLE_EQ(slow.sections[0].nodes[0].seconds, whole.sections[0].nodes[0].seconds / 0.8);
    EXPECT_DOUBLE_EQ(slow.sections[0].items[0].end_s, whole.sections[0].items[0].end_s / 0.8);
    EXPECT_EQ(slow.sections[0].nodes[1], whole.sections[0].nodes[1]);
}

TEST(AsClass, AMessageIsHeldBackByTheSlowerOfItsEnds) {
    const Plan plan = test::pipeline_plan({1, 1}, 2, 1000, 1'000'000'000);
    WhatIf what_if;
    what_if.slow_links = {{SlowLinkKind::nic, 8, 0.5}};
    const RankClasses classes = rank_classes(plan, what_if);
    const LinkRates rates = link_rates(plan.scenario.cluster);
    const TimedProgram whole = time_program(plan, 0);
    const TimedProgram sender = as_class(whole, classes, classes.class_of(0), rates);
    ASSERT_EQ(sender.collectives.size(), 1U);
    EXPECT_DOUBLE_EQ(sender.collectives[0].cost.transfer_s, 2e9 / 25e9);
    EXPECT_DOUBLE_EQ(sender.collectives[0].cost.cap_bytes_per_s, 25e9);
    EXPECT_EQ(as_class(whole, classes, classes.class_of(1), rates), whole);
}

TEST(ClosedFormOfClasses, AComputeBoundStepIsTheStragglers) {
    // Nothing but work: the step takes 1 / 0.8 as long, to rounding.
    const Plan plan = data_parallel(2, {on(Stream::compute, work(500'000'000))});
    const double whole = closed_form_step(plan).step_time_s;
    const auto slow = closed_form_steps(plan, rank_classes(plan, straggler(5, 0.8)));
    ASSERT_EQ(slow.size(), 1U);
    EXPECT_NEAR(slow[0].step_time_s, whole / 0.8, 1e-12);
    EXPECT_EQ(closed_form_steps(plan, rank_classes(plan, straggler(5, 1))), closed_form_steps(plan));
}

}  // namespace
}  // namespace zeroplan
