#include <gtest/gtest.h>

#include "core/cost/tiny_plan.hpp"
#include "zeroplan/collective_cost.hpp"

namespace zeroplan {
namespace {

/// Eight H100 PCIe, joined in pairs.
ClusterSpec h100_pcie() {
    ClusterSpec cluster = test::test_cluster(1);
    cluster.gpu.compute_capability = 90;
    cluster.gpu.link = "pcie5";
    cluster.gpu.link_bytes_per_s = 64e9;
    cluster.intra_node = IntraNode::nvlink_pairs;
    return cluster;
}

TEST(BridgedPairs, HaveTheirBridgeBesidePcie) {
    const LinkRates rates = link_rates(h100_pcie());
    EXPECT_DOUBLE_EQ(rates.intra_node_bytes_per_s, 64e9 * 0.75);
    EXPECT_DOUBLE_EQ(rates.bridge_bytes_per_s, 145e9 * 0.824);
    EXPECT_EQ(link_rates(test::test_cluster(1)).bridge_bytes_per_s, 0);
}

TEST(BridgedPairs, OfGpusWithNvlinkCrossPcieBetweenPairs) {
    ClusterSpec cluster = h100_pcie();
    cluster.gpu.link = "nvlink3";
    cluster.gpu.link_bytes_per_s = 300e9;
    cluster.host.pcie_bytes_per_s = 32e9;
    EXPECT_DOUBLE_EQ(link_rates(cluster).intra_node_bytes_per_s, 24e9);  // as NCCL's graph of such a node
    EXPECT_DOUBLE_EQ(link_rates(cluster).bridge_bytes_per_s, 240e9);
}

TEST(BridgedPairs, AreTwoRanksNextToEachOther) {
    const ClusterSpec cluster = h100_pcie();
    const auto bridged = [&](GroupKind kind, const GroupSizes& sizes) {
        return group_placement(kind, sizes, cluster).bridged;
    };
    EXPECT_TRUE(bridged(GroupKind::tensor_group, {.tensor = 2}));
    EXPECT_TRUE(bridged(GroupKind::shard_group, {.shard = 2}));
    EXPECT_FALSE(bridged(GroupKind::replica_group, {.shard = 4}));  // 0 and 4
    EXPECT_FALSE(bridged(GroupKind::tensor_group, {.tensor = 4}));
    EXPECT_FALSE(bridged(GroupKind::world, {}));
}

TEST(BridgedPairs, OfSeveralNodesOfTwoAreOneCommunicatorOverTheNetwork) {
    ClusterSpec cluster = test::test_cluster(2);
    cluster.intra_node = IntraNode::nvlink_pairs;
    cluster.gpus_per_node = 2;
    cluster.gpus_used = 4;
    EXPECT_EQ(group_placement(GroupKind::world, 1, cluster), (GroupPlacement{4, 2, 2, 2, true}));
}

TEST(BridgedPairs, AreOfNoOddNode) {
    ClusterSpec cluster = h100_pcie();
    cluster.gpus_per_node = 3;
    cluster.nodes = 2;
    cluster.gpus_used = 6;
    // Ranks 2 and 3 lie on two nodes.
    EXPECT_FALSE(group_placement(GroupKind::tensor_group, GroupSizes{.tensor = 2}, cluster).bridged);
}

TEST(BridgedPairs, ReduceOverTheBridgeAndEverybodyElseOverPcie) {
    const ClusterSpec cluster = h100_pcie();
    const Bytes gib{1ULL << 30};
    const auto bus = [&](const GroupPlacement& placement) {
        const CollectiveCost cost = collective_cost(CollectiveKind::all_reduce, gib, placement, cluster);
        EXPECT_EQ(cost.on_bridge, placement.bridged);
        const auto n = static_cast<double>(placement.ranks);
        return static_cast<double>(gib.count()) / cost.seconds() * 2 * (n - 1) / n;
    };
    // As fast as two such cards alone, which docs/accuracy.md compares with NVIDIA/nccl#1161: 116 GB/s there.
    ClusterSpec alone = cluster;
    alone.gpus_per_node = alone.gpus_used = 2;
    const GroupPlacement pair = group_placement(GroupKind::tensor_group, GroupSizes{.tensor = 2}, cluster);
    const GroupPlacement both = group_placement(GroupKind::world, 2, alone);
    EXPECT_EQ(pair, both);
    EXPECT_DOUBLE_EQ(collective_cost(CollectiveKind::all_reduce, gib, pair, cluster).seconds(),
                     collective_cost(CollectiveKind::all_reduce, gib, both, alone).seconds());
    EXPECT_GT(bus(pair), 2 * 48e9);
    EXPECT_LT(bus(group_placement(GroupKind::replica_group, GroupSizes{.shard = 4}, cluster)), 48e9);
    EXPECT_LT(bus(group_placement(GroupKind::world, 8, cluster)), 48e9);
}

TEST(BridgedPairs, AreMeasuredByTwoRanksOfANode) {
    ClusterSpec cluster = h100_pcie();
    const Bytes gib{1ULL << 30};
    cluster.calibration.collectives = {
        {CollectiveKind::all_reduce, 2, 1, static_cast<double>(gib.count()), 1}};
    const auto seconds = [&](const GroupPlacement& placement) {
        return collective_cost(CollectiveKind::all_reduce, gib, placement, cluster).seconds();
    };
    EXPECT_DOUBLE_EQ(seconds({2, 1, 2, 2, true}), 1);
    EXPECT_LT(seconds({2, 1, 2, 2, false}), 0.1);  // another link, which was not measured
}

TEST(BridgedPairs, SendMessagesOverTheBridgeOfATwoGpuNodeAlone) {
    ClusterSpec cluster = h100_pcie();
    EXPECT_FALSE(message_cost(Bytes{1ULL << 20}, false, cluster).on_bridge);
    cluster.gpus_used = 2;
    EXPECT_TRUE(message_cost(Bytes{1ULL << 20}, false, cluster).on_bridge);
}

}  // namespace
}  // namespace zeroplan
