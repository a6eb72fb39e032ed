#include <gtest/gtest.h>

#include "core/cost/tiny_plan.hpp"
#include "zeroplan/collective_cost.hpp"

namespace zeroplan {
namespace {

constexpr Bytes large{1ULL << 30};

CollectiveCost of(CollectiveKind kind, const GroupPlacement& placement, const ClusterSpec& cluster,
                  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring) {
    return collective_cost(kind, large, placement, cluster, {.algorithm = algorithm, .protocol = {}});
}

constexpr GroupPlacement node{.ranks = 8, .nodes = 1, .ranks_per_node = 8, .rails = 8};
constexpr GroupPlacement two_nodes{.ranks = 16, .nodes = 2, .ranks_per_node = 8, .rails = 8};

/// developer forum 337991: ncclAllGather launches 24 blocks on 8 H100; NVIDIA/nccl#689: 16 where NICs of 8
/// GPUs are the bound.
TEST(NcclOccupancy, HasAThreadBlockForEachChannel) {
    EXPECT_EQ(of(CollectiveKind::all_gather, node, test::test_cluster(1)).channels, 24);
    EXPECT_EQ(of(CollectiveKind::all_gather, two_nodes, test::test_cluster(2)).channels, 16);
    EXPECT_EQ(of(CollectiveKind::all_reduce, node, test::test_cluster(1), CollectiveAlgorithm::nvls).channels,
              16);
}

/// 14 GB/s a channel over the network, powers of two; all channels over NVLink.
TEST(NcclOccupancy, IsWhatFillsTheNicForAMessage) {
    ClusterSpec cluster = test::test_cluster(2);
    EXPECT_EQ(message_cost(large, true, cluster).channels, 4);
    cluster.inter_node.bytes_per_s_per_gpu = 12.5e9;
    EXPECT_EQ(message_cost(large, true, cluster).channels, 1);
    EXPECT_EQ(message_cost(large, false, cluster).channels, 32);
    EXPECT_EQ(of(CollectiveKind::all_to_all, two_nodes, test::test_cluster(2)).channels, 16);
    cluster.intra_node = IntraNode::pcie;
    EXPECT_EQ(message_cost(large, false, cluster).channels, 2);
}

TEST(NcclOccupancy, OfOneRankANodeIsFourChannelsForEachOfItsRings) {
    // One channel of 48 GB/s, twice and twice again.
    EXPECT_EQ(of(CollectiveKind::all_gather, {4, 4, 1, 1}, test::test_cluster(4)).channels, 4);
}

TEST(NcclOccupancy, OfNvlsOnBlackwellHangsOnTheNetwork) {
    ClusterSpec cluster = test::test_cluster(2);
    cluster.gpu.compute_capability = 100;
    const auto channels = [&](std::uint64_t nodes) {
        const GroupPlacement placement{.ranks = 8 * nodes, .nodes = nodes, .ranks_per_node = 8, .rails = 8};
        const auto algorithm = nodes > 1 ? CollectiveAlgorithm::nvls_tree : CollectiveAlgorithm::nvls;
        return of(CollectiveKind::all_reduce, placement, cluster, algorithm).channels;
    };
    EXPECT_EQ(channels(1), 24);
    EXPECT_EQ(channels(2), 32);
    EXPECT_EQ(channels(4), 24);
}

TEST(NcclOccupancy, TakesTheChannelsOfTheClustersOwnLog) {
    ClusterSpec cluster = test::test_cluster(1);
    cluster.calibration.constants["nccl_channels"] = 4;
    EXPECT_EQ(of(CollectiveKind::all_gather, node, cluster).channels, 4);
}

TEST(NcclOccupancy, CountsAccessesOfMemoryByWhatArrives) {
    const ClusterSpec cluster = test::test_cluster(1);
    const double arrives = static_cast<double>(large.count()) * 7 / 8;
    EXPECT_DOUBLE_EQ(of(CollectiveKind::all_gather, node, cluster).memory_bytes, 2 * arrives);
    EXPECT_DOUBLE_EQ(of(CollectiveKind::reduce_scatter, node, cluster).memory_bytes, 3 * arrives);
    EXPECT_DOUBLE_EQ(of(CollectiveKind::all_reduce, node, cluster).memory_bytes, 2 * 2.5 * arrives);
    // The switch reduces: the buffer is read once and written once.
    EXPECT_DOUBLE_EQ(of(CollectiveKind::all_reduce, node, cluster, CollectiveAlgorithm::nvls).memory_bytes,
                     2 * static_cast<double>(large.count()));
}

TEST(NcclOccupancy, IsNothingOnTheHost) {
    ClusterSpec cluster = test::test_cluster(1);
    cluster.gpu.is_host = true;
    EXPECT_EQ(collective_cost(CollectiveKind::all_gather, large, node, cluster).channels, 0);
}

}  // namespace
}  // namespace zeroplan
