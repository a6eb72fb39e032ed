#include <gtest/gtest.h>

#include "core/cost/tiny_plan.hpp"
#include "cost/nccl_channels.hpp"
#include "zeroplan/collective_cost.hpp"

// Collectives that the network's switches reduce. Worked from NCCL 2.30's src/graph/tuning.cc by hand.
namespace zeroplan {
namespace {

using Algorithm = CollectiveAlgorithm;
using Kind = CollectiveKind;

ClusterSpec dgx_h100(std::uint64_t nodes) {
    ClusterSpec cluster = test::test_cluster(nodes);  // 450 · 0.824 = 370.8 GB/s of NVLink, NICs of 50 GB/s
    cluster.inter_node.sharp = true;
    return cluster;
}

ClusterSpec dgx_a100(std::uint64_t nodes) {
    ClusterSpec cluster = dgx_h100(nodes);
    cluster.gpu.compute_capability = 80;
    cluster.gpu.link = "nvlink3";
    cluster.gpu.link_bytes_per_s = 300e9;  // of which NCCL counts 240
    cluster.inter_node.bytes_per_s_per_gpu = 25e9;
    return cluster;
}

CollectiveCost cost_of(const ClusterSpec& cluster, Kind kind, Algorithm algorithm,
                       std::uint64_t bytes = 16'000'000'000) {
    return collective_cost(kind, Bytes{bytes}, group_placement(GroupKind::world, 1, cluster), cluster,
                           {algorithm, std::nullopt});
}

bool has(const ClusterSpec& cluster, Kind kind, Algorithm algorithm) {
    return can_force(kind, group_placement(GroupKind::world, 1, cluster), cluster, {algorithm, std::nullopt});
}

// 8 channels of 48 GB/s, of which NCCL counts 85 % on Hopper, and half of that for an all-reduce.
TEST(CollNetDirect, ReducesAtTheSameTimeOnAnyNumberOfNodes) {
    for (const std::uint64_t nodes : {2U, 16U, 512U}) {
        const CollectiveCost cost = cost_of(dgx_h100(nodes), Kind::all_reduce, Algorithm::collnet_direct);
        EXPECT_EQ(cost.protocol, CollectiveProtocol::simple);
        EXPECT_NEAR(cost.latency_s, (2 * (3.7 + 7 * 0.4) + 31) * 1e-6, 1e-12);
        EXPECT_NEAR(cost.cap_bytes_per_s, 8 * 48e9 * 0.85 / 2, 1);
        // A NIC sends its eighth of the buffer once and gets it once; a GPU sends 7/8 of its own to the other
        // heads and its part of the result to 7 others.
        EXPECT_NEAR(cost.nic_weight * cost.unit_bytes, 16e9 / 8, 1);
        EXPECT_NEAR(cost.intra_weight * cost.unit_bytes, 16e9 * 14 / 8, 1);
    }
}

// Between nodes 24 GB/s, inside them 48: NCCL's model counts with the latter, which is more than NVLinks
// carry.
TEST(CollNetDirect, OfA100IsAsFastAsItsNvlinks) {
    const CollectiveCost cost = cost_of(dgx_a100(4), Kind::all_reduce, Algorithm::collnet_direct);
    EXPECT_NEAR(cost.cap_bytes_per_s, 8 * 48e9 / 2, 1);
    EXPECT_NEAR(cost.transfer_s, 16e9 * 14 / 8 / 240e9, 1e-9);
}

TEST(CollNetDirect, GathersAndScattersWhatOtherNodesHave) {
    const CollectiveCost gather = cost_of(dgx_h100(4), Kind::all_gather, Algorithm::collnet_direct);
    EXPECT_NEAR(gather.cap_bytes_per_s, 8 * 0.9 * 48e9, 1);
    EXPECT_NEAR(gather.nic_weight * gather.unit_bytes, 16e9 / 8 * 3 / 4, 1);
    // 7/8 of the buffer pass a GPU's link: 56 · 4 / 3 units of 1/64 of what NICs get, rounded up to 75.
    EXPECT_NEAR(gather.intra_weight * gather.unit_bytes, 16e9 * 3 / 4 / 64 * 75, 1);
    EXPECT_NEAR(gather.transfer_s, 16e9 / (8 * 0.9 * 48e9), 1e-9);
    const CollectiveCost scatter = cost_of(dgx_h100(4), Kind::reduce_scatter, Algorithm::collnet_direct);
    EXPECT_NEAR(scatter.nic_weight * scatter.unit_bytes, 16e9 / 8, 1);
    EXPECT_NEAR(scatter.intra_weight * scatter.unit_bytes, 16e9 * 7 / 8, 1);
}

// Half of 8 · 48 GB/s: the chain's channels are the ring's.
TEST(CollNetChain, ReducesAlongAChainOfEachNode) {
    const CollectiveCost cost = cost_of(dgx_h100(64), Kind::all_reduce, Algorithm::collnet_chain);
    EXPECT_NEAR(cost.latency_s, (2 * 7 * 2.8 + 30) * 1e-6, 1e-12);
    EXPECT_NEAR(cost.cap_bytes_per_s, 8 * 48e9 / 2, 1);
    EXPECT_NEAR(cost.nic_weight * cost.unit_bytes, 16e9 / 8, 1);
    EXPECT_NEAR(cost.intra_weight * cost.unit_bytes, 2 * 16e9 * 7 / 8, 1);
    // Of A100 24 GB/s become 30 inside a node: its NVLinks carry no 8 chains of 48.
    EXPECT_NEAR(cost_of(dgx_a100(4), Kind::all_reduce, Algorithm::collnet_chain).cap_bytes_per_s,
                8 * 30e9 / 2, 1);
}

TEST(CollNetChain, OfOneRankANodeHasTheTreesLatency) {
    const ClusterSpec cluster = dgx_h100(16);
    const GroupPlacement replicas = group_placement(GroupKind::replica_group, 8, cluster);
    const CollectiveCost cost = collective_cost(Kind::all_reduce, Bytes{1 << 20}, replicas, cluster,
                                                {Algorithm::collnet_chain, std::nullopt});
    EXPECT_NEAR(cost.latency_s, 14e-6, 1e-12);
    EXPECT_EQ(cost.intra_weight, 0U);
    EXPECT_NEAR(cost.nic_weight * cost.unit_bytes, 1 << 20, 1e-6);
}

// NVLS with switches: 48 GB/s a head bind before 40 · 0.85 · 7/8 · 2 = 59.5 of NVLink.
TEST(NvlsAcrossNodes, NeedsSwitchesThatReduce) {
    const CollectiveCost cost = cost_of(dgx_h100(4), Kind::all_reduce, Algorithm::nvls);
    EXPECT_NEAR(cost.latency_s, (25 + 18) * 1e-6, 1e-12);
    EXPECT_NEAR(cost.cap_bytes_per_s, 8 * 48e9 * 32 / 62, 1);
    EXPECT_NEAR(cost.nic_weight * cost.unit_bytes, 16e9 / 8, 1);
    EXPECT_NEAR(cost.intra_weight * cost.unit_bytes, 16e9, 1);
    const CollectiveCost gather = cost_of(dgx_h100(4), Kind::all_gather, Algorithm::nvls);
    EXPECT_NEAR(gather.cap_bytes_per_s, 8 * 40e9 * 0.85 * 7 / 8 * 7 / 8, 1);
    ClusterSpec without = dgx_h100(4);
    without.inter_node.sharp = false;
    EXPECT_FALSE(has(without, Kind::all_reduce, Algorithm::nvls));
    EXPECT_TRUE(has(without, Kind::all_reduce, Algorithm::nvls_tree));
}

TEST(CollNet, IsThereOnlyWhereSwitchesReduce) {
    for (const Algorithm algorithm : {Algorithm::collnet_direct, Algorithm::collnet_chain}) {
        ClusterSpec cluster = dgx_h100(4);
        EXPECT_TRUE(has(cluster, Kind::all_reduce, algorithm));
        EXPECT_EQ(has(cluster, Kind::all_gather, algorithm), algorithm == Algorithm::collnet_direct);
        EXPECT_EQ(has(cluster, Kind::reduce_scatter, algorithm), algorithm == Algorithm::collnet_direct);
        EXPECT_FALSE(has(cluster, Kind::broadcast, algorithm));
        EXPECT_FALSE(has(dgx_h100(1), Kind::all_reduce, algorithm));
        cluster.intra_node = IntraNode::nvlink_mesh;
        EXPECT_EQ(has(cluster, Kind::all_reduce, algorithm), algorithm == Algorithm::collnet_chain);
        cluster.inter_node.sharp = false;
        EXPECT_FALSE(has(cluster, Kind::all_reduce, algorithm));
    }
    ClusterSpec wide = test::test_cluster(2, 16);
    wide.inter_node.sharp = true;
    EXPECT_FALSE(has(wide, Kind::all_reduce, Algorithm::collnet_direct));  // for at most 8 ranks of a node
}

// 8 GPUs share 4 NICs of 50 GB/s: 4 channels become 8 of 24, and a head for every second GPU scatters
// nothing.
TEST(CollNet, OfFewerNicsHasFewerHeads) {
    ClusterSpec cluster = dgx_a100(4);
    cluster.inter_node.nics_per_node = 4;
    EXPECT_FALSE(has(cluster, Kind::all_gather, Algorithm::collnet_direct));
    const CollectiveCost cost = cost_of(cluster, Kind::all_reduce, Algorithm::collnet_direct);
    EXPECT_NEAR(cost.nic_weight * cost.unit_bytes, 16e9 / 8, 1);  // a quarter for each, of twice the share
    EXPECT_NEAR(cost.intra_weight * cost.unit_bytes, 16e9 * 10 / 4, 1);
    const nccl::TwoSpeeds channels =
        nccl::direct_channels(4, 50, {.ranks = 32, .nodes = 4, .ranks_per_node = 8, .rails = 8},
                              nccl::Generation::ampere, link_rates(cluster));
    EXPECT_EQ(channels.count, 8);
    EXPECT_EQ(channels.inter_gb, 24);
}

TEST(CollNet, IsChosenWhereItIsCheapest) {
    const ClusterSpec cluster = dgx_h100(128);
    const GroupPlacement world = group_placement(GroupKind::world, 1, cluster);
    const auto chosen = [&](Kind kind, std::uint64_t bytes) {
        return collective_cost(kind, Bytes{bytes}, world, cluster);
    };
    // 43 us beside a tree's 14 · 2 · 7 and more; of gathers 44 us beside a ring's 1.2 ms.
    EXPECT_EQ(chosen(Kind::all_reduce, 1 << 20).algorithm, Algorithm::nvls);
    EXPECT_EQ(chosen(Kind::all_reduce, 16'000'000'000).algorithm, Algorithm::nvls);
    EXPECT_EQ(chosen(Kind::all_gather, 100'000'000).algorithm, Algorithm::collnet_direct);
    EXPECT_EQ(chosen(Kind::broadcast, 1 << 20).algorithm, Algorithm::ring);
    ClusterSpec ampere = dgx_a100(128);
    EXPECT_EQ(collective_cost(Kind::all_reduce, Bytes{1'000'000'000}, world, ampere).algorithm,
              Algorithm::collnet_direct);
}

TEST(ChainChannels, AreRaisedToTwiceTheSpeedBetweenNodes) {
    using nccl::Generation;
    const GroupPlacement two{.ranks = 16, .nodes = 2, .ranks_per_node = 8, .rails = 8};
    const LinkRates rates{.intra_node_bytes_per_s = 240e9, .nic_bytes_per_s = 12.5e9};
    const auto raised = [&](double count, double gb) {
        return nccl::chain_channels({count, gb}, two, Generation::ampere, rates).intra_gb;
    };
    EXPECT_EQ(raised(4, 12), 24);
    EXPECT_EQ(raised(8, 24), 30);      // 48 of each of 8 channels are more than 240 · 8 / 7
    EXPECT_EQ(raised(8, 20.5), 20.5);  // no step of the ladder: NCCL's search ends
    EXPECT_EQ(raised(16, 20), 20);
}

}  // namespace
}  // namespace zeroplan
