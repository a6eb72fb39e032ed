#include "zeroplan/fabric_sites.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace zeroplan {
namespace {

/// All nodes of the fabric in the order in which a job takes them.
std::vector<std::uint64_t> order(const Placement& placement, std::uint64_t leaves,
                                 std::uint64_t nodes_per_leaf) {
    if (placement.kind == PlacementKind::list) return placement.nodes;
    std::vector<std::uint64_t> result;
    for (std::uint64_t i = 0; i < leaves * nodes_per_leaf; ++i)
        result.push_back(placement.kind == PlacementKind::packed ? i
                                                                 : i % leaves * nodes_per_leaf + i / leaves);
    return result;
}

std::uint64_t highest(const Placement& placement) {
    if (placement.kind != PlacementKind::list || placement.nodes.empty()) return 0;
    return *std::max_element(placement.nodes.begin(), placement.nodes.end());
}

/// The leaves of the first `count` nodes that are free, which they are no longer.
std::vector<std::uint64_t> take(const std::vector<std::uint64_t>& nodes, std::uint64_t count,
                                std::uint64_t nodes_per_leaf, std::vector<bool>& taken) {
    std::vector<std::uint64_t> leaves;
    for (const std::uint64_t node : nodes) {
        if (leaves.size() == count) break;
        if (taken[node]) continue;
        taken[node] = true;
        leaves.push_back(node / nodes_per_leaf);
    }
    return leaves;
}

}  // namespace

bool blocks(const std::optional<LeafSwitches>& leaf_switches) {
    return leaf_switches && leaf_switches->oversubscription > 1;
}

std::string describe(const LeafSwitches& leaf_switches, const Placement& placement) {
    constexpr std::array<const char*, 3> words{"packed", "spread", "placed by its list"};
    return fmt::format("leaf switches of {} nodes, oversubscribed {} to 1, the job {}", leaf_switches.nodes,
                       leaf_switches.oversubscription, words[static_cast<std::size_t>(placement.kind)]);
}

Placement background_placement(const WhatIf& what_if) {
    if (what_if.background && what_if.background->placement) return *what_if.background->placement;
    return {what_if.placement.kind == PlacementKind::list ? PlacementKind::packed : what_if.placement.kind,
            {}};
}

std::vector<NodeSite> node_sites(const std::vector<std::uint64_t>& own,
                                 const std::vector<std::uint64_t>& others) {
    std::vector<NodeSite> sites;
    for (const std::uint64_t leaf : own)
        sites.push_back({leaf, static_cast<std::uint64_t>(std::count(others.begin(), others.end(), leaf))});
    return sites;
}

std::uint64_t nodes_in_use(const ClusterSpec& cluster) {
    return (cluster.gpus_used + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
}

FabricSites place_jobs(const WhatIf& what_if, std::uint64_t nodes, std::uint64_t background_nodes) {
    if (!what_if.leaf_switches) return {};
    const std::uint64_t per_leaf = what_if.leaf_switches->nodes;
    const Placement other = background_placement(what_if);
    const std::uint64_t least =
        std::max({nodes + background_nodes, highest(what_if.placement) + 1, highest(other) + 1});
    FabricSites sites;
    sites.leaves = (least + per_leaf - 1) / per_leaf;
    std::vector<bool> taken(sites.leaves * per_leaf, false);
    sites.job = take(order(what_if.placement, sites.leaves, per_leaf), nodes, per_leaf, taken);
    sites.background = take(order(other, sites.leaves, per_leaf), background_nodes, per_leaf, taken);
    return sites;
}

}  // namespace zeroplan
