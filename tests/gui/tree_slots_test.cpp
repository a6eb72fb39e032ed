#include "tree_slots.hpp"

#include <gtest/gtest.h>

namespace zeroplan::gui {
namespace {

using Kind = TreeSlot::Kind;

FabricSpec tree(std::uint64_t nodes_per_leaf, std::uint64_t leaves_per_pod = 0) {
    FabricSpec fabric;
    fabric.kind = FabricKind::fat_tree;
    fabric.nodes_per_leaf = nodes_per_leaf;
    fabric.leaves_per_pod = leaves_per_pod;
    return fabric;
}

std::uint64_t nodes_in(const std::vector<TreeSlot>& slots, std::uint64_t per_leaf, std::uint64_t per_pod) {
    std::uint64_t nodes = 0;
    for (const TreeSlot& slot : slots)
        nodes += slot.count * (slot.kind == Kind::more_pods     ? per_leaf * per_pod
                               : slot.kind == Kind::more_leaves ? per_leaf
                                                                : 1);
    return nodes;
}

TEST(TreeSlots, AllNodesHaveTheirPlaceWhereThereIsRoom) {
    const auto slots = tree_slots(tree(4), 8, 8);
    ASSERT_EQ(slots.size(), 8U);
    EXPECT_EQ(slots[3], (TreeSlot{Kind::node, 3, 1, 0, 0}));
    EXPECT_EQ(slots[4], (TreeSlot{Kind::node, 4, 1, 1, 0}));
}

TEST(TreeSlots, OfASingleSwitchTheRestIsFolded) {
    const auto slots = tree_slots({}, 2048, 12);
    ASSERT_EQ(slots.size(), 12U);
    EXPECT_EQ(slots.back(), (TreeSlot{Kind::more_nodes, 11, 2037, 0, 0}));
}

TEST(TreeSlots, AreNeverMoreThanThereIsRoomForAndStandForEveryNode) {
    for (const std::uint64_t most : {4U, 7U, 12U, 30U})
        for (const std::uint64_t nodes : {16U, 64U, 512U, 2048U}) {
            EXPECT_LE(tree_slots({}, nodes, most).size(), most);
            const auto two = tree_slots(tree(8), nodes, most);
            EXPECT_LE(two.size(), most) << nodes;
            EXPECT_EQ(nodes_in(two, 8, 0), nodes);
            const auto three = tree_slots(tree(4, 2), nodes, most);
            EXPECT_LE(three.size(), most) << nodes;
            EXPECT_EQ(nodes_in(three, 4, 2), nodes);
        }
}

TEST(TreeSlots, TwoPodsShowWhatIsBetweenThem) {
    const auto slots = tree_slots(tree(32, 8), 2048, 13);
    ASSERT_EQ(slots.size(), 13U);  // twice 4 nodes, 28 more, 7 more leaves; 6 more pods
    EXPECT_EQ(slots[4], (TreeSlot{Kind::more_nodes, 4, 28, 0, 0}));
    EXPECT_EQ(slots[5], (TreeSlot{Kind::more_leaves, 32, 7, 1, 0}));
    EXPECT_EQ(slots[6], (TreeSlot{Kind::node, 256, 1, 8, 1}));
    EXPECT_EQ(slots[12], (TreeSlot{Kind::more_pods, 512, 6, 16, 2}));
}

TEST(TreeSlots, ALastLeafMayBeFullerOrEmptier) {
    const auto slots = tree_slots(tree(4), 6, 10);
    ASSERT_EQ(slots.size(), 6U);
    EXPECT_EQ(slots.back(), (TreeSlot{Kind::node, 5, 1, 1, 0}));
}

}  // namespace
}  // namespace zeroplan::gui
