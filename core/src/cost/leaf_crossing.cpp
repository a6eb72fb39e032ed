#include "zeroplan/leaf_crossing.hpp"

namespace zeroplan {
namespace {

using Leaves = std::vector<std::uint64_t>;

void cross(LeafCrossing& crossing, std::uint64_t from, std::uint64_t to, double units) {
    if (from == to) return;
    crossing.up[from] += units;
    crossing.down[to] += units;
}

LeafCrossing ring(const Leaves& leaves, double units) {
    LeafCrossing crossing;
    for (std::size_t i = 0; i < leaves.size(); ++i)
        cross(crossing, leaves[i], leaves[(i + 1) % leaves.size()], units);
    return crossing;
}

/// The second tree is the first one mirrored, or shifted by one where the number of nodes is odd.
std::size_t in_second_tree(std::size_t node, std::size_t nodes) {
    return nodes % 2 == 0 ? nodes - 1 - node : (node + 1) % nodes;
}

LeafCrossing trees(const Leaves& leaves, double units) {
    LeafCrossing crossing;
    const std::vector<std::uint64_t> parents = binary_tree(leaves.size());
    const auto edge = [&](std::uint64_t a, std::uint64_t b) {
        cross(crossing, a, b, units);
        cross(crossing, b, a, units);
    };
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        edge(leaves[i], leaves[parents[i]]);
        edge(leaves[in_second_tree(i, leaves.size())], leaves[in_second_tree(parents[i], leaves.size())]);
    }
    return crossing;
}

LeafCrossing pairs(const Leaves& leaves, double units) {
    LeafCrossing crossing;
    for (const std::uint64_t from : leaves)
        for (const std::uint64_t to : leaves) cross(crossing, from, to, units);
    return crossing;
}

}  // namespace

LeafCrossing& LeafCrossing::operator+=(const LeafCrossing& other) {
    for (const auto& [leaf, units] : other.up) up[leaf] += units;
    for (const auto& [leaf, units] : other.down) down[leaf] += units;
    return *this;
}

std::vector<std::uint64_t> binary_tree(std::uint64_t nodes) {
    std::vector<std::uint64_t> parents(nodes, 0);
    for (std::uint64_t node = 1; node < nodes; ++node) {
        const std::uint64_t lowest = node & (~node + 1);  // the lowest bit that is set
        const std::uint64_t above = (node ^ lowest) | (lowest << 1);
        parents[node] = above < nodes ? above : node ^ lowest;
    }
    return parents;
}

LeafCrossing leaf_crossing(const CollectiveCost& cost, const Leaves& leaves, std::uint64_t ranks) {
    const auto nodes = static_cast<double>(leaves.size());
    if (cost.nic_weight == 0 || leaves.size() < 2) return {};
    const double per_node = static_cast<double>(ranks) / nodes;
    const double node_units = cost.nic_weight * per_node;  // a node sends them over its NICs
    switch (cost.algorithm) {
        case CollectiveAlgorithm::tree:
        case CollectiveAlgorithm::nvls_tree:
            // A node sends the buffer twice (once of two nodes), an edge half of it each way.
            return trees(leaves, node_units / (leaves.size() == 2 ? 2 : 4));
        case CollectiveAlgorithm::pairwise:
            return pairs(leaves, node_units / (nodes - 1));
        default:
            return ring(leaves, node_units);
    }
}

}  // namespace zeroplan
