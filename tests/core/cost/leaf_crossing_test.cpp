#include "zeroplan/leaf_crossing.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

using Units = std::map<std::uint64_t, double>;

CollectiveCost cost(CollectiveAlgorithm algorithm, std::uint32_t nic_weight) {
    CollectiveCost result;
    result.algorithm = algorithm;
    result.nic_weight = nic_weight;
    return result;
}

TEST(BinaryTree, IsNccls) {
    // graph/trees.cc draws it for 14 ranks: 0 above 8, 8 above 4 and 12, …
    EXPECT_EQ(binary_tree(8), (std::vector<std::uint64_t>{0, 2, 4, 2, 0, 6, 4, 6}));
    EXPECT_EQ(binary_tree(14), (std::vector<std::uint64_t>{0, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12}));
    EXPECT_EQ(binary_tree(1), std::vector<std::uint64_t>{0});
}

TEST(LeafCrossing, OfARingIsItsEdgesOnEveryRail) {
    // 4 nodes of 8 ranks: packed, one edge leaves each leaf and one enters; spread, all four cross.
    const CollectiveCost ring = cost(CollectiveAlgorithm::ring, 3);
    const LeafCrossing packed = leaf_crossing(ring, {0, 0, 1, 1}, 32);
    EXPECT_EQ(packed.up, (Units{{0, 24}, {1, 24}}));
    EXPECT_EQ(packed.down, packed.up);
    EXPECT_EQ(leaf_crossing(ring, {0, 1, 0, 1}, 32).up, (Units{{0, 48}, {1, 48}}));
    EXPECT_EQ(leaf_crossing(ring, {5, 5, 5, 5}, 32), LeafCrossing{});
    EXPECT_EQ(leaf_crossing(cost(CollectiveAlgorithm::ring, 0), {0, 1}, 16), LeafCrossing{});
}

TEST(LeafCrossing, OfDoubleTreesIsHalfTheBufferAnEdgeEachWay) {
    // Trees of nodes 0 to 3: 1-2, 2-0, 3-2 and, mirrored, 2-1, 1-3, 0-1: four edges join {0, 1} and {2, 3}.
    const CollectiveCost tree = cost(CollectiveAlgorithm::tree, 2);
    const LeafCrossing packed = leaf_crossing(tree, {0, 0, 1, 1}, 32);
    EXPECT_EQ(packed.up, (Units{{0, 16}, {1, 16}}));
    EXPECT_EQ(packed.down, packed.up);
    // All six edges have an end in a leaf of its own: what a leaf passes is what its node sends.
    double sum = 0;
    for (const auto& [leaf, units] : leaf_crossing(tree, {0, 1, 2, 3}, 32).up) sum += units;
    EXPECT_EQ(sum, 12 * 4);
    // Two nodes: one edge in each tree, with half of the buffer, which a node sends once in all.
    EXPECT_EQ(leaf_crossing(tree, {0, 1}, 16).up, (Units{{0, 16}, {1, 16}}));
}

TEST(LeafCrossing, OfAnAllToAllIsWhatGoesToOtherLeaves) {
    // A node of 8 ranks sends 8 · 6 units, a third of it to each other node: two of those are elsewhere.
    const LeafCrossing crossing = leaf_crossing(cost(CollectiveAlgorithm::pairwise, 6), {0, 0, 1, 1}, 32);
    EXPECT_EQ(crossing.up, (Units{{0, 64}, {1, 64}}));
    EXPECT_EQ(crossing.down, crossing.up);
}

}  // namespace
}  // namespace zeroplan
