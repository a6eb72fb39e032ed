#include "zeroplan/fabric_crossing.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

constexpr double nic = 50e9;

/// Of leaf switches of so many nodes: link i leads up from leaf i, link leaves + i down to it.
FabricRoutes leaves(std::uint64_t nodes_per_leaf, std::uint64_t nodes, FabricKind kind = FabricKind::fat_tree,
                    bool relays = true) {
    FabricSpec spec;
    spec.kind = kind;
    spec.nodes_per_leaf = nodes_per_leaf;
    spec.leaf_oversubscription = 2;
    return {spec, nodes, 8, nic, relays};
}

/// Nodes of 8 ranks.
CommunicatorSite full(const std::vector<std::uint64_t>& nodes) {
    CommunicatorSite site;
    for (const std::uint64_t node : nodes) site.nodes.push_back({node, {0, 1, 2, 3, 4, 5, 6, 7}});
    site.ranks = 8 * nodes.size();
    return site;
}

TEST(BinaryTree, IsNccls) {
    // graph/trees.cc draws it for 14 ranks: 0 above 8, 8 above 4 and 12, …
    EXPECT_EQ(binary_tree(8), (std::vector<std::uint64_t>{0, 2, 4, 2, 0, 6, 4, 6}));
    EXPECT_EQ(binary_tree(14), (std::vector<std::uint64_t>{0, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12}));
    EXPECT_EQ(binary_tree(1), std::vector<std::uint64_t>{0});
}

TEST(FabricCrossing, OfARingIsItsEdgesOnEveryRail) {
    // 4 nodes of 8 ranks: packed, one edge leaves each leaf and one enters; spread, all four cross.
    const FabricRoutes fabric = leaves(2, 4);
    EXPECT_EQ(fabric_crossing(CrossingPattern::ring, full({0, 1, 2, 3}), fabric),
              (Crossing{{0, 8}, {1, 8}, {2, 8}, {3, 8}}));
    EXPECT_EQ(fabric_crossing(CrossingPattern::ring, full({0, 2, 1, 3}), fabric),
              (Crossing{{0, 16}, {1, 16}, {2, 16}, {3, 16}}));
    EXPECT_TRUE(fabric_crossing(CrossingPattern::ring, full({0, 1}), fabric).empty());
    EXPECT_TRUE(fabric_crossing(CrossingPattern::ring, full({0, 2}), {}).empty());
}

TEST(FabricCrossing, OfDoubleTreesIsHalfTheBufferAnEdgeEachWay) {
    // Trees of nodes 0 to 3: 1-2, 2-0, 3-2 and, mirrored, 2-1, 1-3, 0-1: four edges join {0, 1} and {2, 3}.
    EXPECT_EQ(fabric_crossing(CrossingPattern::trees, full({0, 1, 2, 3}), leaves(2, 4)),
              (Crossing{{0, 8}, {1, 8}, {2, 8}, {3, 8}}));
    // All six edges have an end in a leaf of its own: what a leaf passes is what its node sends.
    double sum = 0;
    for (const auto& [link, units] :
         fabric_crossing(CrossingPattern::trees, full({0, 1, 2, 3}), leaves(1, 4)))
        sum += link < 4 ? units : 0;
    EXPECT_EQ(sum, 6 * 4);
    // Two nodes: one edge in each tree, with half of the buffer, which a node sends once in all.
    EXPECT_EQ(fabric_crossing(CrossingPattern::trees, full({0, 1}), leaves(1, 2)),
              (Crossing{{0, 8}, {1, 8}, {2, 8}, {3, 8}}));
}

TEST(FabricCrossing, OfPatIsFewChunksFarAndManyNear) {
    // Of three chunks a node sends one over a distance of 2 and two over 1: between {0, 1} and {2, 3} both of
    // the far ones and one of the near ones pass each way.
    const auto one_rank = [](std::uint64_t node) { return GroupNode{node, {0}}; };
    CommunicatorSite site{{one_rank(0), one_rank(1), one_rank(2), one_rank(3)}, 4};
    const Crossing crossing = fabric_crossing(CrossingPattern::powers_of_two, site, leaves(2, 4));
    ASSERT_EQ(crossing.size(), 4U);
    for (const auto& [link, units] : crossing) EXPECT_NEAR(units, 2 * 1.0 / 3 + 2.0 / 3, 1e-12);
}

TEST(FabricCrossing, OfSwitchesThatReduceIsOneNodesShareALeaf) {
    // Leaves {0, 1}, {2, 3}, {4}: each sends up and gets what one node's 8 NICs do.
    const FabricRoutes fabric = leaves(2, 5);
    EXPECT_EQ(fabric_crossing(CrossingPattern::star_all_reduce, full({0, 1, 2, 3, 4}), fabric),
              (Crossing{{0, 8}, {1, 8}, {2, 8}, {3, 8}, {4, 8}, {5, 8}}));
    // A node's chunk is a quarter of what a NIC gets of a gather; of a scatter all that a leaf adds up goes
    // up and one part in five for each node comes down.
    EXPECT_EQ(fabric_crossing(CrossingPattern::star_all_gather, full({0, 1, 2, 3, 4}), fabric),
              (Crossing{{0, 4}, {1, 4}, {2, 2}, {3, 6}, {4, 6}, {5, 8}}));
    EXPECT_EQ(fabric_crossing(CrossingPattern::star_reduce_scatter, full({0, 1, 2, 3, 4}), fabric),
              (Crossing{{0, 8}, {1, 8}, {2, 8}, {3, 8 * 2.0 / 5}, {4, 8 * 2.0 / 5}, {5, 8 / 5.0}}));
    EXPECT_TRUE(fabric_crossing(CrossingPattern::star_all_reduce, full({2, 3}), fabric).empty());
    // Every rail has switches of its own.
    const FabricRoutes rails = leaves(2, 4, FabricKind::rail_optimised);
    const Crossing crossing = fabric_crossing(CrossingPattern::star_all_reduce, full({0, 1, 2, 3}), rails);
    EXPECT_EQ(crossing.size(), 32U);
    for (const auto& [link, units] : crossing) EXPECT_EQ(units, 1) << link;
}

TEST(FabricCrossing, OfAnAllToAllIsWhatGoesToOtherLeaves) {
    // A node of 8 ranks sends 8 units, a third of it to each other node: two of those are elsewhere.
    const Crossing crossing = fabric_crossing(CrossingPattern::pairs, full({0, 1, 2, 3}), leaves(2, 4));
    ASSERT_EQ(crossing.size(), 4U);
    for (const auto& [link, units] : crossing) EXPECT_DOUBLE_EQ(units, 2 * 8 * 2.0 / 3) << link;
}

TEST(FabricCrossing, StaysOnItsRail) {
    // Two units of 2 nodes: of each rail's ring one edge leaves each unit; inside a unit nothing crosses.
    const FabricRoutes rails = leaves(2, 4, FabricKind::rail_optimised);
    const Crossing ring = fabric_crossing(CrossingPattern::ring, full({0, 1, 2, 3}), rails);
    ASSERT_EQ(ring.size(), 32U);
    for (const auto& [link, units] : ring) EXPECT_DOUBLE_EQ(units, 1) << link;
    EXPECT_TRUE(fabric_crossing(CrossingPattern::ring, full({0, 1}), rails).empty());
    // GPUs relay what goes to another rail, so that an all-to-all crosses rails inside nodes.
    EXPECT_TRUE(fabric_crossing(CrossingPattern::pairs, full({0, 1}), rails).empty());
    const Crossing pairs = fabric_crossing(CrossingPattern::pairs, full({0, 1, 2, 3}), rails);
    ASSERT_EQ(pairs.size(), 32U);
    for (const auto& [link, units] : pairs) EXPECT_DOUBLE_EQ(units, 2 * 2.0 / 3) << link;
}

TEST(FabricCrossing, ChangesRailsOverTheSpineWhereNobodyRelays) {
    // Of what a rank sends to the other node, 7 of 8 parts go to other rails.
    const FabricRoutes rails = leaves(2, 2, FabricKind::rail_optimised, false);
    const Crossing pairs = fabric_crossing(CrossingPattern::pairs, full({0, 1}), rails);
    ASSERT_EQ(pairs.size(), 16U);
    for (const auto& [link, units] : pairs) EXPECT_DOUBLE_EQ(units, 2 * 7.0 / 8) << link;
    // A group whose ranks have different NICs on its nodes has nothing to relay over: all of it crosses.
    CommunicatorSite aside{{{0, {0, 1}}, {1, {2, 3}}}, 4};
    double up = 0;
    for (const auto& [link, units] :
         fabric_crossing(CrossingPattern::pairs, aside, leaves(2, 2, FabricKind::rail_optimised)))
        up += link < 8 ? units : 0;
    EXPECT_DOUBLE_EQ(up, 4);
}

TEST(FabricCrossing, OfARingOnATorusIsItsEdgesLinkByLink) {
    // 3 × 3, row after row: from a row's end round the edge and one down. Each row's links to the right are
    // passed by its three edges, the links down by the one that ends the row.
    FabricSpec spec;
    spec.kind = FabricKind::torus;
    spec.dimensions = {3, 3};
    const FabricRoutes torus(spec, 9, 8, nic, true);
    const Crossing crossing =
        fabric_crossing(CrossingPattern::ring, full({0, 1, 2, 3, 4, 5, 6, 7, 8}), torus);
    EXPECT_EQ(crossing.size(), 9U + 3U);
    for (const auto& [link, units] : crossing) EXPECT_DOUBLE_EQ(units, 8) << link;
}

}  // namespace
}  // namespace zeroplan
