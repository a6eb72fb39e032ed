#include "zeroplan/collective_cost.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/cost/tiny_plan.hpp"

namespace zeroplan {
namespace {

using test::test_cluster;

GroupPlacement world_of(const ClusterSpec& cluster) {
    return group_placement(GroupKind::world, cluster.gpus_used, cluster);
}

ClusterSpec dgx_a100(std::uint64_t nodes) {
    ClusterSpec cluster = test_cluster(nodes);
    cluster.gpu.compute_capability = 80;
    cluster.gpu.link = "nvlink3";
    cluster.gpu.link_bytes_per_s = 300e9;
    cluster.inter_node.bytes_per_s_per_gpu = 25e9;
    return cluster;
}

TEST(GroupPlacement, WorldFillsNodes) {
    EXPECT_EQ(world_of(test_cluster(1)), (GroupPlacement{8, 1, 8, 8}));
    EXPECT_EQ(world_of(test_cluster(128)), (GroupPlacement{1024, 128, 8, 8}));
}

TEST(GroupPlacement, PartOfANode) {
    ClusterSpec cluster = test_cluster(1);
    cluster.gpus_used = 4;
    EXPECT_EQ(world_of(cluster), (GroupPlacement{4, 1, 4, 4}));
}

TEST(GroupPlacement, ReplicasOfNodeSizedShardGroupsHaveOneRankANode) {
    EXPECT_EQ(group_placement(GroupKind::shard_group, 8, test_cluster(4)), (GroupPlacement{8, 1, 8, 8}));
    EXPECT_EQ(group_placement(GroupKind::replica_group, 8, test_cluster(4)), (GroupPlacement{4, 4, 1, 1}));
}

TEST(GroupPlacement, ReplicasOfHalfNodeShardGroupsHaveTwoRanksANode) {
    EXPECT_EQ(group_placement(GroupKind::shard_group, 4, test_cluster(4)), (GroupPlacement{4, 1, 4, 4}));
    EXPECT_EQ(group_placement(GroupKind::replica_group, 4, test_cluster(4)), (GroupPlacement{8, 4, 2, 2}));
}

TEST(GroupPlacement, TakesTheGroupSpreadWorst) {
    // Shard groups of 6 on nodes of 8: ranks 6..11 lie 2 + 4 on two nodes, 0..5 on one.
    EXPECT_EQ(group_placement(GroupKind::shard_group, 6, test_cluster(3)), (GroupPlacement{6, 2, 4, 2}));
}

// tp 4 · cp 2 · dp 4 · pp 2 on 8 nodes of 8, numbered in that order.
TEST(GroupPlacement, ModelParallelGroupsFollowTheOrderOfRanks) {
    const GroupSizes sizes{
        .shard = 8, .tensor = 4, .context = 2, .pipeline = 2, .expert = 2, .expert_tensor = 4};
    const auto place = [&](GroupKind kind) { return group_placement(kind, sizes, test_cluster(8)); };
    EXPECT_EQ(place(GroupKind::tensor_group), (GroupPlacement{4, 1, 4, 4}));
    EXPECT_EQ(place(GroupKind::context_group), (GroupPlacement{2, 1, 2, 2}));  // ranks 0, 4
    EXPECT_EQ(place(GroupKind::shard_group), (GroupPlacement{8, 4, 2, 2}));    // 0, 4, 8, … 28
    EXPECT_EQ(place(GroupKind::expert_group), (GroupPlacement{2, 1, 2, 2}));   // 0, 4
    EXPECT_EQ(place(GroupKind::secondary_shard_group), (GroupPlacement{1, 1, 1, 1}));
    EXPECT_EQ(place(GroupKind::expert_data_group), (GroupPlacement{4, 4, 1, 1}));  // 0, 8, 16, 24
}

TEST(GroupPlacement, TensorGroupsOfAWholeNodeLeaveOneRankANodeToData) {
    const GroupSizes sizes{.shard = 16, .tensor = 8};
    EXPECT_EQ(group_placement(GroupKind::tensor_group, sizes, test_cluster(16)),
              (GroupPlacement{8, 1, 8, 8}));
    EXPECT_EQ(group_placement(GroupKind::shard_group, sizes, test_cluster(16)),
              (GroupPlacement{16, 16, 1, 1}));
}

TEST(GroupPlacement, EmbeddingGroupsReachFromTheFirstStageToTheLast) {
    const auto place = [](const GroupSizes& sizes, const ClusterSpec& cluster) {
        return group_placement(GroupKind::embedding_group, sizes, cluster);
    };
    const GroupPlacement apart{2, 2, 1, 1}, together{2, 1, 2, 2};
    // Stages of 32 ranks on 4 nodes each: 0 and 32, or with 4 stages of 2 nodes 0 and 48.
    EXPECT_EQ(place({.shard = 8, .tensor = 4, .pipeline = 2}, test_cluster(8)), apart);
    EXPECT_EQ(place({.shard = 4, .tensor = 4, .pipeline = 4}, test_cluster(8)), apart);
    // Four stages of 2 on one node: 0 and 6, 1 and 7.
    EXPECT_EQ(place({.tensor = 2, .pipeline = 4}, test_cluster(1)), together);
    // Stages of 3 on nodes of 4: 0 and 3 share one, 1 and 4 don't.
    ClusterSpec uneven = test_cluster(2, 4);
    uneven.gpus_used = 6;
    EXPECT_EQ(place({.shard = 3, .pipeline = 2}, uneven), apart);
    EXPECT_EQ(place({.shard = 8}, test_cluster(1)), (GroupPlacement{1, 1, 1, 1}));
}

TEST(GroupPlacement, TwoStagesOfOneRankMayBeABridgedPair) {
    ClusterSpec cluster = test_cluster(1, 4);
    cluster.intra_node = IntraNode::nvlink_pairs;
    const auto bridged = [&](std::uint64_t ranks) {
        cluster.gpus_used = ranks;
        return group_placement(GroupKind::embedding_group, GroupSizes{.pipeline = ranks}, cluster).bridged;
    };
    EXPECT_TRUE(bridged(2));   // 0 and 1
    EXPECT_FALSE(bridged(4));  // 0 and 3
}

TEST(CollectiveCost, AllToAllSharesTheBufferBetweenLinkAndNic) {
    // 16 ranks on 2 nodes: of a rank's 16 GB, 7/16 stay on the node (370.8 GB/s) and 8/16 leave it (50 GB/s).
    const ClusterSpec cluster = test_cluster(2);
    const CollectiveCost cost =
        collective_cost(CollectiveKind::all_to_all, Bytes{16'000'000'000}, world_of(cluster), cluster);
    EXPECT_EQ(cost.algorithm, CollectiveAlgorithm::pairwise);
    EXPECT_NEAR(cost.nic_weight * cost.unit_bytes, 8e9, 1);
    EXPECT_NEAR(cost.intra_weight * cost.unit_bytes, 7e9, 1);
    EXPECT_NEAR(cost.transfer_s, 8e9 / 50e9, 1e-9);
}

TEST(CollectiveCost, AMessageTakesOneLink) {
    const ClusterSpec cluster = test_cluster(2);
    const CollectiveCost far = message_cost(Bytes{500'000'000}, true, cluster);
    EXPECT_NEAR(far.transfer_s, 0.01, 1e-9);
    EXPECT_EQ(far.intra_weight, 0U);
    EXPECT_NEAR(message_cost(Bytes{370'800'000}, false, cluster).transfer_s, 1e-3, 1e-9);
}

TEST(CollectiveCost, AForcedAlgorithmIsTaken) {
    const ClusterSpec cluster = test_cluster(1);
    const auto forced = [&](CollectiveAlgorithm algorithm) {
        return collective_cost(CollectiveKind::all_reduce, Bytes{16'000'000'000}, world_of(cluster), cluster,
                               {algorithm, std::nullopt});
    };
    EXPECT_EQ(forced(CollectiveAlgorithm::ring).algorithm, CollectiveAlgorithm::ring);
    EXPECT_GT(forced(CollectiveAlgorithm::ring).seconds(), forced(CollectiveAlgorithm::nvls).seconds());
    EXPECT_THROW(forced(CollectiveAlgorithm::nvls_tree), Error);
}

TEST(CollectiveCost, GrowsWithTheBytes) {
    for (const std::uint64_t nodes : {1U, 2U, 16U}) {
        const ClusterSpec cluster = test_cluster(nodes);
        for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                          CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
            double before = 0;
            for (std::uint64_t bytes = 1024; bytes <= 16ULL << 30; bytes *= 4) {
                const double now = collective_cost(kind, Bytes{bytes}, world_of(cluster), cluster).seconds();
                EXPECT_GE(now, before) << to_string(kind) << " of " << bytes << " on " << nodes;
                before = now;
            }
        }
    }
}

// NCCL's latencies for 1024 H100 on 128 nodes (2.30.7; hand: base + 896 local steps + 127 network steps).
TEST(CollectiveCost, RingLatencyOn1024Ranks) {
    const ClusterSpec cluster = test_cluster(128);
    const CollectiveCost tiny =
        collective_cost(CollectiveKind::all_gather, Bytes{1024}, world_of(cluster), cluster);
    EXPECT_EQ(tiny.protocol, CollectiveProtocol::ll);
    EXPECT_NEAR(tiny.latency_s, (6.6 + 896 * 1.0 + 127 * 2.7) * 1e-6, 1e-12);  // 1.2 ms

    // 100 MB: 2.56 ms of which 0.34 ms is bandwidth: LL128, 8 channels of 36.7 GB/s.
    const CollectiveCost middle =
        collective_cost(CollectiveKind::all_gather, Bytes{100'000'000}, world_of(cluster), cluster);
    EXPECT_EQ(middle.protocol, CollectiveProtocol::ll128);
    EXPECT_NEAR(middle.latency_s, (14.0 + 896 * 1.9 + 127 * 4.0) * 1e-6, 1e-12);
    EXPECT_NEAR(middle.transfer_s, 1e8 * 1023 / 1024 / (8 * 36.7e9), 1e-9);
    EXPECT_NEAR(middle.latency_s + middle.transfer_s, 2.56e-3, 0.01e-3);

    const CollectiveCost large =
        collective_cost(CollectiveKind::all_gather, Bytes{10'000'000'000}, world_of(cluster), cluster);
    EXPECT_EQ(large.protocol, CollectiveProtocol::simple);
    EXPECT_NEAR(large.latency_s, (8.4 + 896 * 3.4 + 127 * 14.0) * 1e-6, 1e-12);  // 4.8 ms
    EXPECT_NEAR(large.transfer_s, 1e10 * 1023 / 1024 / (8 * 48e9), 1e-9);
}

TEST(CollectiveCost, OneNodeRingIsAsFastAsNvlinkLadder) {
    // 450 GB/s · 0.824 = 370.8 GB/s; six channels of 60 GB/s fit: 360 GB/s (measured on H200: 361.4).
    const ClusterSpec cluster = test_cluster(1);
    const CollectiveCost cost =
        collective_cost(CollectiveKind::all_gather, Bytes{16'000'000'000}, world_of(cluster), cluster);
    EXPECT_EQ(cost.algorithm, CollectiveAlgorithm::ring);
    EXPECT_NEAR(cost.transfer_s, 16e9 * 7 / 8 / 360e9, 1e-9);
    EXPECT_NEAR(cost.latency_s, (8.4 + 7 * 3.4) * 1e-6, 1e-12);
}

TEST(CollectiveCost, OneNodeAllReduceTakesNvlsOnHopper) {
    // 8 channels of 40 GB/s · 0.85 · 7/8 · 2 = 476 GB/s bus bandwidth (measured on H200: 480).
    const ClusterSpec cluster = test_cluster(1);
    const CollectiveCost cost =
        collective_cost(CollectiveKind::all_reduce, Bytes{16'000'000'000}, world_of(cluster), cluster);
    EXPECT_EQ(cost.algorithm, CollectiveAlgorithm::nvls);
    EXPECT_NEAR(cost.transfer_s, 16e9 * 14 / 8 / 476e9, 1e-9);
}

TEST(CollectiveCost, OneNodeAllReduceOnA100) {
    // 12 of 15 NVLinks' worth: 240 GB/s by NCCL's law, of which 97 % are reached (measured: 231 to 232.5).
    const ClusterSpec cluster = dgx_a100(1);
    const CollectiveCost cost =
        collective_cost(CollectiveKind::all_reduce, Bytes{4'294'967'296}, world_of(cluster), cluster);
    EXPECT_EQ(cost.algorithm, CollectiveAlgorithm::ring);
    EXPECT_NEAR(cost.bytes / cost.transfer_s * 14 / 8, 240e9, 1);
    EXPECT_NEAR(cost.bytes / cost.seconds() * 14 / 8, 232e9, 1e9);
}

TEST(CollectiveCost, RailsShareTheRingsBytes) {
    // 2 nodes × 8: a NIC carries 1/8 of what crosses an edge, a GPU's NVLink 7/8.
    const ClusterSpec cluster = test_cluster(2);
    const CollectiveCost cost =
        collective_cost(CollectiveKind::all_gather, Bytes{16'000'000'000}, world_of(cluster), cluster);
    EXPECT_EQ(cost.nic_weight, 1U);
    EXPECT_EQ(cost.intra_weight, 7U);
    EXPECT_NEAR(cost.unit_bytes, 16e9 * 15 / 16 / 8, 1);
    // NCCL's 48 GB/s a channel bind before the NIC's 50.
    EXPECT_NEAR(cost.transfer_s, cost.unit_bytes / 48e9, 1e-9);
}

TEST(CollectiveCost, OneRankANodeUsesNoLocalLink) {
    const ClusterSpec cluster = test_cluster(4);
    const GroupPlacement replicas = group_placement(GroupKind::replica_group, 8, cluster);
    const CollectiveCost cost =
        collective_cost(CollectiveKind::all_gather, Bytes{4'000'000'000}, replicas, cluster);
    EXPECT_EQ(cost.intra_weight, 0U);
    EXPECT_EQ(cost.nic_weight, 1U);
    EXPECT_NEAR(cost.unit_bytes, 3e9, 1);
    EXPECT_NEAR(cost.latency_s, (8.4 + 3 * 14.0) * 1e-6, 1e-12);
}

TEST(CollectiveCost, OneRankANodeGathersByAggregatedTrees) {
    // NCCL 2.30 tuning.cc, 64 nodes of one rank: 8.0 + 6 · 14 / 3.5 + 64 · 2.8 = 211.2 us, where the ring
    // has 63 hops; at 3/4 of the bus.
    const ClusterSpec cluster = test_cluster(64);
    const GroupPlacement one_each{64, 64, 1, 1};
    const CollectiveChoice pat{CollectiveAlgorithm::pat, std::nullopt};
    const CollectiveCost cost =
        collective_cost(CollectiveKind::all_gather, Bytes{1 << 20}, one_each, cluster, pat);
    EXPECT_NEAR(cost.latency_s, 211.2e-6, 1e-12);
    EXPECT_EQ(cost.intra_weight, 0U);
    const CollectiveChoice ring{CollectiveAlgorithm::ring, CollectiveProtocol::simple};
    const auto law = [&](const CollectiveChoice& choice) {
        return collective_cost(CollectiveKind::all_gather, Bytes{1ULL << 34}, one_each, cluster, choice)
            .cap_bytes_per_s;
    };
    EXPECT_NEAR(law(pat), law(ring) * 63 / 64 * 0.75, 1e-3 * law(pat));
    EXPECT_FALSE(can_force(CollectiveKind::all_reduce, one_each, cluster, pat));
    EXPECT_FALSE(can_force(CollectiveKind::all_gather, {16, 2, 8, 8}, cluster, pat));
}

TEST(CollectiveCost, AllReduceAcrossNodesUsesTrees) {
    const ClusterSpec cluster = dgx_a100(16);
    const CollectiveCost cost =
        collective_cost(CollectiveKind::all_reduce, Bytes{1 << 20}, world_of(cluster), cluster);
    EXPECT_EQ(cost.algorithm, CollectiveAlgorithm::tree);
    EXPECT_EQ(cost.protocol, CollectiveProtocol::ll128);
    EXPECT_NEAR(cost.latency_s, (14.0 + 2 * (7 * 1.25 + 4 * 8.5)) * 1e-6, 1e-12);
    // Each NIC carries the buffer up and down once for the node, shared by 8 rails.
    EXPECT_NEAR(cost.nic_weight * cost.unit_bytes, 2.0 * (1 << 20) / 8, 1e-6);
    EXPECT_NEAR(cost.intra_weight * cost.unit_bytes, 2.0 * (1 << 20) * 7 / 8, 1e-6);
}

/// p4de: 4 NICs of 100 Gb/s. Channels of 12 GB/s between the nodes have 24 inside them, which NCCL counts
/// with for trees of two nodes: 0.92 · 4 · 24 / 2 = 44.2 GB/s, where a ring has 48 · 8 / 15 = 25.6. 41.8 GB/s
/// are measured at 2 GiB (aws-samples/awsome-distributed-training, nccl-tests).
TEST(CollectiveCost, TwoNodesReduceByTreesAsFastAsTheirNvlink) {
    ClusterSpec cluster = test::test_cluster(2);
    cluster.gpu.compute_capability = 80;
    cluster.gpu.link = "nvlink3";
    cluster.gpu.link_bytes_per_s = 300e9;
    cluster.inter_node = {.kind = InterNodeKind::efa, .bytes_per_s_per_gpu = 6.25e9, .nics_per_node = 4};
    const GroupPlacement placement{.ranks = 16, .nodes = 2, .ranks_per_node = 8, .rails = 8};
    const Bytes bytes{2ULL << 30};
    const CollectiveCost cost = collective_cost(CollectiveKind::all_reduce, bytes, placement, cluster);
    EXPECT_EQ(cost.algorithm, CollectiveAlgorithm::tree);
    EXPECT_NEAR(cost.cap_bytes_per_s, 0.92 * 4 * 24e9 / 2, 1);
    const CollectiveCost ring = collective_cost(CollectiveKind::all_reduce, bytes, placement, cluster,
                                                {CollectiveAlgorithm::ring, {}});
    EXPECT_NEAR(ring.cap_bytes_per_s, 48e9 * 8 / 15, 1);
}

/// p4de again: of fewer GPUs of a node NCCL finds the channels of the NICs that they reach, and the flow has
/// their share of these.
TEST(CollectiveCost, FewRanksANodeHaveTheirShareOfNicsThatOthersUseToo) {
    ClusterSpec cluster = test::test_cluster(2);
    cluster.gpu.compute_capability = 80;
    cluster.inter_node = {.kind = InterNodeKind::efa, .bytes_per_s_per_gpu = 6.25e9, .nics_per_node = 4};
    const auto gather = [&](std::uint64_t local) {
        return collective_cost(CollectiveKind::all_gather, Bytes{1'600'000'000}, {2 * local, 2, local, local},
                               cluster, {CollectiveAlgorithm::ring, {}});
    };
    for (const std::uint64_t local : {1U, 2U, 3U, 8U}) {
        const auto ranks = static_cast<double>(2 * local);
        const double nics = std::ceil(static_cast<double>(local) / 2);
        EXPECT_NEAR(gather(local).cap_bytes_per_s, 12e9 * nics * ranks / (ranks - 1), 1) << local;
        EXPECT_NEAR(gather(local).transfer_s,
                    1.6e9 * (ranks - 1) / ranks / std::min(12e9 * nics, 6.25e9 * static_cast<double>(local)),
                    1e-9)
            << local;
    }
}

/// By NCCL's law NVLS has (heads − 1) / heads of its bandwidth: one NIC a node leaves none.
TEST(CollectiveCost, OneHeadReducesNothing) {
    ClusterSpec cluster = test::test_cluster(2);
    const GroupPlacement placement{.ranks = 16, .nodes = 2, .ranks_per_node = 8, .rails = 8};
    const CollectiveChoice nvls{CollectiveAlgorithm::nvls_tree, {}};
    EXPECT_TRUE(can_force(CollectiveKind::all_reduce, placement, cluster, nvls));
    cluster.inter_node.nics_per_node = 1;
    EXPECT_FALSE(can_force(CollectiveKind::all_reduce, placement, cluster, nvls));
    EXPECT_THROW(collective_cost(CollectiveKind::all_reduce, Bytes{1 << 30}, placement, cluster, nvls),
                 Error);
}

/// NCCL looks for channels of the 12.5 GB/s that an Omni-Path NIC states, and the flow gets 0.2356 of them.
TEST(CollectiveCost, ANetworkThatFallsShortHoldsTheFlowBackAlone) {
    ClusterSpec cluster = test::test_cluster(4, 4);
    cluster.gpu.compute_capability = 70;
    cluster.inter_node = {.kind = InterNodeKind::omni_path, .bytes_per_s_per_gpu = 12.5e9};
    const GroupPlacement placement{.ranks = 16, .nodes = 4, .ranks_per_node = 4, .rails = 4};
    const CollectiveCost cost = collective_cost(CollectiveKind::all_gather, Bytes{4'000'000'000}, placement,
                                                cluster, {CollectiveAlgorithm::ring, {}});
    EXPECT_NEAR(cost.cap_bytes_per_s, 48e9 * 16 / 15, 1);
    EXPECT_NEAR(cost.transfer_s, 4e9 * 15 / 16 / (4 * 12.5e9 * 0.2356), 1e-9);
}

TEST(CollectiveCost, HostRanksCopyThroughSharedMemory) {
    ClusterSpec cluster = test_cluster(1, 4);
    cluster.gpu.is_host = true;
    cluster.gpu.link = "shared_memory";
    cluster.gpu.link_bytes_per_s = 10e9;
    cluster.intra_node = IntraNode::shared_memory;
    const CollectiveCost cost =
        collective_cost(CollectiveKind::reduce_scatter, Bytes{4'000'000'000}, world_of(cluster), cluster);
    EXPECT_EQ(cost.algorithm, CollectiveAlgorithm::shared_memory);
    EXPECT_NEAR(cost.seconds(), 20e-6 + 3e9 / 10e9, 1e-12);
}

TEST(CollectiveCost, ARingOverSeveralNvlinkPairsCrossesPcie) {
    // Four A100 in two NVLink pairs behind PCIe 4: 24 of 32 GB/s (NCCL topo.h), as NCCL's graph of such a
    // node says.
    ClusterSpec pairs = test_cluster(1, 4);
    pairs.gpu.link = "nvlink3";
    pairs.gpu.link_bytes_per_s = 300e9;
    pairs.intra_node = IntraNode::nvlink_pairs;
    pairs.host.pcie_bytes_per_s = 32e9;
    EXPECT_DOUBLE_EQ(link_rates(pairs).intra_node_bytes_per_s, 24e9);
    EXPECT_DOUBLE_EQ(link_rates(pairs).bridge_bytes_per_s, 240e9);
}

TEST(CollectiveCost, OneRankTakesNoTime) {
    const ClusterSpec cluster = test_cluster(1, 1);
    EXPECT_EQ(collective_cost(CollectiveKind::all_gather, Bytes{1000}, world_of(cluster), cluster).seconds(),
              0);
}

TEST(CollectiveCost, NamesAMissingNetwork) {
    ClusterSpec cluster = test_cluster(2);
    cluster.inter_node = {};
    try {
        collective_cost(CollectiveKind::all_gather, Bytes{1000}, world_of(cluster), cluster);
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_input);
        EXPECT_EQ(error.place().pointer, "/cluster/inter_node");
        EXPECT_NE(error.message().find("2 nodes"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace zeroplan
