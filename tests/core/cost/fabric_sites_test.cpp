#include "zeroplan/fabric_sites.hpp"

#include <gtest/gtest.h>

#include "core/cost/random_program.hpp"
#include "core/cost/tiny_plan.hpp"
#include "zeroplan/rank_classes.hpp"

namespace zeroplan {
namespace {

using Nodes = std::vector<std::uint64_t>;

WhatIf on_leaves(std::uint64_t nodes, double ratio, Placement placement = {}) {
    WhatIf what_if;
    what_if.leaf_switches = {nodes, ratio};
    what_if.placement = std::move(placement);
    return what_if;
}

WhatIf on_torus(std::vector<std::uint64_t> dimensions, Placement placement = {}) {
    WhatIf what_if;
    what_if.fabric.emplace();
    what_if.fabric->kind = FabricKind::torus;
    what_if.fabric->dimensions = std::move(dimensions);
    what_if.placement = std::move(placement);
    return what_if;
}

Plan gathering(std::uint64_t nodes) {
    return test::test_plan(test::test_cluster(nodes),
                           {{"step", 1, {test::on(Stream::gather, test::all_gather(1000))}}},
                           test::work_buffers);
}

TEST(PlaceJobs, PacksLeafAfterLeaf) {
    // 6 nodes and 4 more on leaves of 4: three leaves, of which the middle one is shared.
    const FabricSites sites = place_jobs(on_leaves(4, 2), 6, 4);
    EXPECT_EQ(sites.nodes, 12U);
    EXPECT_EQ(sites.job, (Nodes{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(sites.background, (Nodes{6, 7, 8, 9}));
}

TEST(PlaceJobs, SpreadsOverAllLeaves) {
    const FabricSites sites = place_jobs(on_leaves(4, 2, {PlacementKind::spread, {}}), 6, 4);
    EXPECT_EQ(sites.job, (Nodes{0, 4, 8, 1, 5, 9}));
    EXPECT_EQ(sites.background, (Nodes{2, 6, 10, 3}));
}

TEST(PlaceJobs, TakesTheNodesOfAList) {
    WhatIf what_if = on_leaves(4, 2, {PlacementKind::list, {0, 9, 4}});
    EXPECT_EQ(place_jobs(what_if, 3, 2).job, (Nodes{0, 9, 4}));
    EXPECT_EQ(place_jobs(what_if, 3, 2).background, (Nodes{1, 2}));  // packed
    what_if.background = BackgroundJob{"other", "{}", Placement{PlacementKind::list, {8, 9}}};
    EXPECT_EQ(place_jobs(what_if, 3, 2).background, Nodes{8});  // 9 is not free
}

TEST(PlaceJobs, FillsATorusRowByRowOrInEveryRow) {
    EXPECT_EQ(place_jobs(on_torus({3, 2}), 4, 2).job, (Nodes{0, 1, 2, 3}));
    EXPECT_EQ(place_jobs(on_torus({3, 2}), 4, 2).background, (Nodes{4, 5}));
    EXPECT_EQ(place_jobs(on_torus({3, 2}, {PlacementKind::spread, {}}), 4, 0).job, (Nodes{0, 3, 1, 4}));
}

TEST(PlaceJobs, HasNothingToPlaceOnASingleSwitch) {
    EXPECT_EQ(place_jobs({}, 6, 4), FabricSites{});
    EXPECT_FALSE(blocks(fabric_of({})));
    EXPECT_FALSE(blocks(fabric_of(on_leaves(4, 1))));
    EXPECT_TRUE(blocks(fabric_of(on_leaves(4, 1.5))));
}

TEST(Fabrics, AreDescribed) {
    EXPECT_EQ(describe(fabric_of(on_leaves(4, 2)), {}),
              "leaf switches of 4 nodes, oversubscribed 2 to 1, the job packed");
    FabricSpec pods = fabric_of(on_leaves(4, 2));
    pods.leaves_per_pod = 8;
    pods.pod_oversubscription = 1.5;
    EXPECT_EQ(describe(pods, {PlacementKind::spread, {}}),
              "leaf switches of 4 nodes, oversubscribed 2 to 1, pods of 8 leaves, 1.5 to 1, the job spread");
    EXPECT_EQ(describe(*on_torus({4, 2}).fabric, {}), "a torus of 4 × 2 nodes, the job packed");
}

TEST(RankClassesOnFabrics, AreOneWhereAllRanksMeet) {
    EXPECT_EQ(rank_classes(gathering(8), on_leaves(4, 2)).classes.size(), 1U);
    // Of 8 nodes on leaves of 3 the last leaf has two; a ring is as fast everywhere.
    const RankClasses uneven = rank_classes(gathering(8), on_leaves(3, 2));
    ASSERT_EQ(uneven.classes.size(), 1U);
    const ClassCommunicator& world = uneven.communicators[uneven.classes[0].communicator[0]];
    ASSERT_EQ(world.sites.size(), 1U);
    ASSERT_EQ(world.sites[0].nodes.size(), 8U);
    EXPECT_EQ(world.sites[0].nodes[7], (GroupNode{7, {0, 1, 2, 3, 4, 5, 6, 7}}));
    EXPECT_EQ(world.sites[0].ranks, 64U);
    EXPECT_EQ(rank_classes(gathering(8), on_torus({4, 2})).classes.size(), 1U);
}

TEST(RankClassesOnFabrics, TellGroupsApartWhoseLinksAreNotAlike) {
    // Shard groups of 2 nodes on leaves of 3: of nodes 0 to 5 only the second group crosses leaves.
    Plan plan = gathering(6);
    plan.layout.shard_group = 16;
    const RankClasses classes = rank_classes(plan, on_leaves(3, 2));
    ASSERT_EQ(classes.classes.size(), 2U);
    EXPECT_EQ(to_string(classes.classes[0].ranks), "0-15,32-47");
    EXPECT_EQ(to_string(classes.classes[1].ranks), "16-31");
    // In a torus of 4 × 2 all rows and all pairs in a row are alike.
    plan = gathering(8);
    plan.layout.shard_group = 16;
    EXPECT_EQ(rank_classes(plan, on_torus({4, 2})).classes.size(), 1U);
}

TEST(RankClassesOnFabrics, TellReplicasApartThatHaveAnotherJobBesideThem) {
    // Shard groups of 2 nodes, spread over two leaves each; another job has a node on the last leaf.
    Plan plan = gathering(4);
    plan.layout.shard_group = 16;
    const WhatIf what_if = on_leaves(2, 2);
    const FabricRoutes routes = fabric_routes(what_if, plan.scenario.cluster, 8);
    const auto classes = [&](const std::vector<std::uint64_t>& job,
                             const std::vector<std::uint64_t>& others) {
        const FabricSites sites{8, job, others};
        return rank_classes(plan, {}, job_sites(routes, sites, job, others)).classes;
    };
    EXPECT_EQ(classes({0, 2, 4, 6}, {}).size(), 1U);
    ASSERT_EQ(classes({0, 2, 4, 6}, {7}).size(), 2U);
    EXPECT_EQ(to_string(classes({0, 2, 4, 6}, {7})[0].ranks), "0-15");
    EXPECT_EQ(classes({0, 1, 4, 5}, {7}).size(), 1U);  // nobody leaves a leaf
}

}  // namespace
}  // namespace zeroplan
