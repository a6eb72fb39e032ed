#include "cost/measured_collectives.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/cost/tiny_plan.hpp"

namespace zeroplan {
namespace {

constexpr GroupPlacement two_nodes{16, 2, 8, 8};

ClusterSpec measured_cluster() {
    ClusterSpec cluster = test::test_cluster(4);
    cluster.calibration.collectives = {{CollectiveKind::all_gather, 16, 2, 1 << 20, 100e-6},
                                       {CollectiveKind::all_gather, 16, 2, 1 << 24, 400e-6}};
    return cluster;
}

double seconds(const ClusterSpec& cluster, std::uint64_t bytes, const GroupPlacement& placement = two_nodes,
               CollectiveKind kind = CollectiveKind::all_gather, const CollectiveChoice& choice = {}) {
    return collective_cost(kind, Bytes{bytes}, placement, cluster, choice).seconds();
}

TEST(MeasuredCollectives, TakeTheMeasuredTimeAndLogarithmsBetween) {
    const ClusterSpec cluster = measured_cluster();
    EXPECT_NEAR(seconds(cluster, 1 << 20), 100e-6, 1e-15);
    EXPECT_NEAR(seconds(cluster, 1 << 22), 200e-6, 1e-12);      // half way in logarithms: √(100 · 400)
    EXPECT_NEAR(seconds(cluster, 1 << 10), 100e-6, 1e-15);      // below the smallest its time
    EXPECT_NEAR(seconds(cluster, 1 << 28), 16 * 400e-6, 1e-9);  // above the largest its bandwidth
}

TEST(MeasuredCollectives, CorrectOthersByTheRatioToTheLaw) {
    const ClusterSpec cluster = measured_cluster();
    const ClusterSpec plain = test::test_cluster(4);
    const GroupPlacement four_nodes{32, 4, 8, 8};
    const double ratio = 100e-6 / seconds(plain, 1 << 20);
    EXPECT_NEAR(seconds(cluster, 1 << 20, four_nodes), ratio * seconds(plain, 1 << 20, four_nodes), 1e-12);
}

TEST(MeasuredCollectives, SayNothingOfOtherKindsLinksAndForcedAlgorithms) {
    const ClusterSpec cluster = measured_cluster();
    const ClusterSpec plain = test::test_cluster(4);
    const GroupPlacement one_node{8, 1, 8, 8};
    EXPECT_EQ(seconds(cluster, 1 << 20, one_node), seconds(plain, 1 << 20, one_node));
    EXPECT_EQ(seconds(cluster, 1 << 20, two_nodes, CollectiveKind::reduce_scatter),
              seconds(plain, 1 << 20, two_nodes, CollectiveKind::reduce_scatter));
    const CollectiveChoice ring{CollectiveAlgorithm::ring, CollectiveProtocol::simple};
    EXPECT_EQ(seconds(cluster, 1 << 20, two_nodes, CollectiveKind::all_gather, ring),
              seconds(plain, 1 << 20, two_nodes, CollectiveKind::all_gather, ring));
}

TEST(MeasuredCollectives, KeepTheFlowWithinTheTime) {
    ClusterSpec fast = test::test_cluster(2);
    fast.calibration.collectives = {
        {CollectiveKind::all_gather, 16, 2, 1 << 30, 1e-4}};  // far above the links
    const CollectiveCost cost = collective_cost(CollectiveKind::all_gather, Bytes{1 << 30}, two_nodes, fast);
    EXPECT_NEAR(cost.seconds(), 1e-4, 1e-15);
    EXPECT_LE(cost.nic_weight * cost.unit_bytes / link_rates(fast).nic_bytes_per_s,
              cost.transfer_s * (1 + 1e-12));
}

TEST(MeasuredCollectives, UseTheGraphsChannels) {
    ClusterSpec cluster = test::test_cluster(2);
    cluster.calibration.ring = RingChannels{8, 20e9, 5e9};
    const CollectiveCost cost =
        collective_cost(CollectiveKind::all_gather, Bytes{1ULL << 34}, two_nodes, cluster);
    EXPECT_NEAR(cost.cap_bytes_per_s, 8 * 5e9 * 16 / 15, 1);  // bus bandwidth over (n − 1) / n
}

}  // namespace
}  // namespace zeroplan
