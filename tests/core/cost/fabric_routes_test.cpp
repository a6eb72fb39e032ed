#include "zeroplan/fabric_routes.hpp"

#include <gtest/gtest.h>

#include "cost/torus_routes.hpp"

namespace zeroplan {
namespace {

constexpr double nic = 50e9;

FabricSpec tree(std::uint64_t nodes, double ratio, std::uint64_t leaves = 0, double pod_ratio = 1) {
    FabricSpec spec;
    spec.kind = FabricKind::fat_tree;
    spec.nodes_per_leaf = nodes;
    spec.leaf_oversubscription = ratio;
    spec.leaves_per_pod = leaves;
    spec.pod_oversubscription = pod_ratio;
    return spec;
}

FabricSpec rails(std::uint64_t nodes, double ratio) {
    FabricSpec spec = tree(nodes, ratio);
    spec.kind = FabricKind::rail_optimised;
    return spec;
}

FabricSpec torus(std::vector<std::uint64_t> dimensions, double link = 0) {
    FabricSpec spec;
    spec.kind = FabricKind::torus;
    spec.dimensions = std::move(dimensions);
    spec.link_bytes_per_s = link;
    return spec;
}

FabricRoutes routes(const FabricSpec& spec, std::uint64_t nodes) {
    return {spec, nodes, 8, nic, true};
}

Crossing route(const FabricRoutes& fabric, FabricPort from, FabricPort to) {
    Crossing crossing;
    fabric.add_route(crossing, from, to, 1);
    return crossing;
}

std::vector<FabricPort> all_nodes(std::uint64_t count) {
    std::vector<FabricPort> ports;
    for (std::uint64_t node = 0; node < count; ++node) ports.push_back({node, 0});
    return ports;
}

TEST(FabricRoutes, OfASwitchThatDoesNotBlockHaveNoLinks) {
    EXPECT_FALSE(FabricRoutes().blocks());
    EXPECT_FALSE(routes({}, 8).blocks());
    EXPECT_FALSE(routes(tree(4, 1), 8).blocks());
    EXPECT_FALSE(routes(rails(4, 1), 8).blocks());
    EXPECT_TRUE(route(routes(tree(4, 1), 8), {0, 0}, {7, 0}).empty());
}

TEST(FabricRoutes, OfATreeOfThreeLevelsGoUpToTheFirstSwitchAboveBoth) {
    // 16 nodes, leaves of 2, pods of 4 leaves; links up from leaves are 0 to 7, down 8 to 15, then the pods'.
    const FabricRoutes fabric = routes(tree(2, 2, 4, 3), 16);
    ASSERT_EQ(fabric.links().size(), 4U);
    EXPECT_EQ(fabric.links()[0].name, "leaf uplink");
    EXPECT_DOUBLE_EQ(fabric.bytes_per_s(0), 2 * 8 * nic / 2);
    EXPECT_EQ(fabric.links()[2].name, "pod uplink");
    EXPECT_EQ(fabric.links()[2].count, 2U);
    EXPECT_DOUBLE_EQ(fabric.bytes_per_s(16), 4 * 2 * 8 * nic / 2 / 3);
    EXPECT_TRUE(route(fabric, {0, 0}, {1, 0}).empty());
    EXPECT_EQ(route(fabric, {0, 0}, {7, 0}), (Crossing{{0, 1}, {8 + 3, 1}}));
    EXPECT_EQ(route(fabric, {15, 0}, {0, 0}), (Crossing{{7, 1}, {8, 1}, {16 + 1, 1}, {18, 1}}));
    // Leaf switches that pass everything leave the pods' links alone.
    EXPECT_EQ(routes(tree(2, 1, 4, 3), 16).links().size(), 2U);
    EXPECT_DOUBLE_EQ(routes(tree(2, 1, 4, 3), 16).bytes_per_s(0), 4 * 2 * 8 * nic / 3);
}

TEST(FabricRoutes, OfRailsCrossTheSpineToOtherRailsOrOtherLeaves) {
    // Two units of 4 nodes: a leaf switch for each of 8 rails; links up 0 to 15, down 16 to 31.
    const FabricRoutes fabric = routes(rails(4, 2), 8);
    EXPECT_DOUBLE_EQ(fabric.bytes_per_s(0), 4 * nic / 2);
    EXPECT_TRUE(route(fabric, {0, 3}, {2, 3}).empty());
    EXPECT_EQ(route(fabric, {0, 3}, {2, 4}), (Crossing{{3, 1}, {16 + 4, 1}}));
    EXPECT_EQ(route(fabric, {0, 3}, {7, 3}), (Crossing{{3, 1}, {16 + 8 + 3, 1}}));
}

TEST(FabricRoutes, OfATorusGoTheShorterWayRoundOneDimensionAfterTheOther) {
    // 5 × 3: node 5 · y + x; link (node · 2 + dimension) · 2, one more for backwards.
    const FabricRoutes fabric = routes(torus({5, 3}), 15);
    EXPECT_EQ(route(fabric, {0, 0}, {2, 0}), (Crossing{{0, 1}, {4, 1}}));
    EXPECT_EQ(route(fabric, {0, 0}, {4, 0}), (Crossing{{1, 1}}));            // round the edge
    EXPECT_EQ(route(fabric, {0, 0}, {6, 0}), (Crossing{{0, 1}, {6, 1}}));    // right, then down
    EXPECT_EQ(route(fabric, {6, 0}, {0, 0}), (Crossing{{25, 1}, {23, 1}}));  // left, then up from node 5
    EXPECT_DOUBLE_EQ(fabric.bytes_per_s(7), 8 * nic / 4);  // two links a dimension share the NICs
    EXPECT_DOUBLE_EQ(routes(torus({5, 3}, 7e9), 15).bytes_per_s(7), 7e9);
    EXPECT_EQ(torus_links_per_node(torus({5, 2, 1}).dimensions), 3U);
}

TEST(FabricRoutes, OfATorusPartWhereBothWaysAreAsLong) {
    const FabricRoutes fabric = routes(torus({4}), 4);
    EXPECT_EQ(route(fabric, {0, 0}, {2, 0}), (Crossing{{0, 0.5}, {2, 0.5}, {1, 0.5}, {7, 0.5}}));
    // Two nodes have one link.
    EXPECT_EQ(route(routes(torus({2}), 2), {1, 0}, {0, 0}), (Crossing{{2, 1}}));
    EXPECT_DOUBLE_EQ(routes(torus({2}), 2).bytes_per_s(0), 8 * nic);
}

TEST(FabricRoutes, FromEachToEachAreThoseOfAllPairs) {
    for (const FabricSpec& spec : {torus({5, 3}), torus({4, 2, 3}), torus({6}), torus({2, 2}),
                                   torus({3, 1, 4}), tree(3, 2), tree(2, 2, 3, 2), rails(4, 2)}) {
        const std::uint64_t nodes = spec.kind == FabricKind::torus ? 0 : 24;
        std::uint64_t count = nodes == 0 ? 1 : nodes;
        for (const std::uint64_t size : spec.dimensions) count *= size;
        const FabricRoutes fabric = routes(spec, count);
        std::vector<FabricPort> from = all_nodes(count), to = from;
        from.resize(count - 1);
        to.erase(to.begin());
        Crossing expected, all;
        for (const FabricPort& a : from)
            for (const FabricPort& b : to) fabric.add_route(expected, a, b, 3);
        fabric.add_routes(all, from, to, 3);
        ASSERT_EQ(all.size(), expected.size()) << to_string(spec.kind);
        for (const auto& [link, units] : expected) EXPECT_NEAR(all[link], units, 1e-9) << link;
    }
}

TEST(FabricRoutes, OfAnAllToAllOnATorusLoadEachLinkByTheDistance) {
    // In a circle of n (odd) the mean distance is (n² − 1) / 4n: n such paths to n nodes over 2n links.
    const std::uint64_t n = 7;
    Crossing crossing;
    const FabricRoutes fabric = routes(torus({n}), n);
    fabric.add_routes(crossing, all_nodes(n), all_nodes(n), 1);
    EXPECT_EQ(crossing.size(), 2 * n);
    for (const auto& [link, units] : crossing) EXPECT_DOUBLE_EQ(units, (49.0 - 1) / 8) << link;
}

}  // namespace
}  // namespace zeroplan
