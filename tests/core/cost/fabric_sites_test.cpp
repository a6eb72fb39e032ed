#include "zeroplan/fabric_sites.hpp"

#include <gtest/gtest.h>

#include "core/cost/random_program.hpp"
#include "core/cost/tiny_plan.hpp"
#include "zeroplan/rank_classes.hpp"

namespace zeroplan {
namespace {

using Leaves = std::vector<std::uint64_t>;

WhatIf on_leaves(std::uint64_t nodes, double ratio, Placement placement = {}) {
    WhatIf what_if;
    what_if.leaf_switches = {nodes, ratio};
    what_if.placement = std::move(placement);
    return what_if;
}

TEST(PlaceJobs, PacksLeafAfterLeaf) {
    // 6 nodes and 4 more on leaves of 4: three leaves, of which the middle one is shared.
    const FabricSites sites = place_jobs(on_leaves(4, 2), 6, 4);
    EXPECT_EQ(sites.leaves, 3U);
    EXPECT_EQ(sites.job, (Leaves{0, 0, 0, 0, 1, 1}));
    EXPECT_EQ(sites.background, (Leaves{1, 1, 2, 2}));
}

TEST(PlaceJobs, SpreadsOverAllLeaves) {
    const FabricSites sites = place_jobs(on_leaves(4, 2, {PlacementKind::spread, {}}), 6, 4);
    EXPECT_EQ(sites.job, (Leaves{0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(sites.background, (Leaves{0, 1, 2, 0}));
}

TEST(PlaceJobs, TakesTheNodesOfAList) {
    WhatIf what_if = on_leaves(4, 2, {PlacementKind::list, {0, 9, 4}});
    EXPECT_EQ(place_jobs(what_if, 3, 2).job, (Leaves{0, 2, 1}));
    EXPECT_EQ(place_jobs(what_if, 3, 2).background, (Leaves{0, 0}));  // packed into 1 and 2
    what_if.background = BackgroundJob{"other", "{}", Placement{PlacementKind::list, {8, 9}}};
    EXPECT_EQ(place_jobs(what_if, 3, 2).background, Leaves{2});  // 9 is not free
}

TEST(PlaceJobs, HasNothingToPlaceWithoutLeafSwitches) {
    EXPECT_EQ(place_jobs({}, 6, 4), FabricSites{});
    EXPECT_FALSE(blocks(std::nullopt));
    EXPECT_FALSE(blocks(LeafSwitches{4, 1}));
    EXPECT_TRUE(blocks(LeafSwitches{4, 1.5}));
}

TEST(RankClassesOnLeafSwitches, AreOneWhereAllLeavesAreAlike) {
    const Plan plan = test::test_plan(test::test_cluster(8),
                                      {{"step", 1, {test::on(Stream::gather, test::all_gather(1000))}}},
                                      test::work_buffers);
    EXPECT_EQ(rank_classes(plan, on_leaves(4, 2)).classes.size(), 1U);
    // Of 8 nodes on leaves of 3 the last leaf has two.
    const RankClasses uneven = rank_classes(plan, on_leaves(3, 2));
    ASSERT_EQ(uneven.classes.size(), 2U);
    EXPECT_EQ(to_string(uneven.classes[1].ranks), "48-63");
    const ClassCommunicator& world = uneven.communicators[uneven.classes[0].communicator[0]];
    ASSERT_EQ(world.sites.size(), 1U);
    EXPECT_EQ(world.sites[0].leaves, (Leaves{0, 0, 0, 1, 1, 1, 2, 2}));
    EXPECT_EQ(world.sites[0].ranks, 64U);
}

TEST(RankClassesOnLeafSwitches, TellReplicasApartThatHaveAnotherJobBesideThem) {
    // Shard groups of 2 nodes, one a leaf of 4 nodes; the other job's nodes are on the second leaf.
    Plan plan = test::test_plan(test::test_cluster(4),
                                {{"step", 1, {test::on(Stream::gather, test::all_gather(1000))}}},
                                test::work_buffers);
    plan.layout.shard_group = 16;
    const RankClasses classes = rank_classes(plan, {}, node_sites({0, 0, 1, 1}, {1, 1}));
    ASSERT_EQ(classes.classes.size(), 2U);
    EXPECT_EQ(to_string(classes.classes[0].ranks), "0-15");
    EXPECT_EQ(rank_classes(plan, {}, node_sites({0, 0, 1, 1}, {0, 0, 1, 1})).classes.size(), 1U);
}

}  // namespace
}  // namespace zeroplan
