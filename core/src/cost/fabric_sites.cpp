#include "zeroplan/fabric_sites.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "zeroplan/collective_cost.hpp"

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

/// The first `count` nodes that are free, which they are no longer.
std::vector<std::uint64_t> take(const std::vector<std::uint64_t>& nodes, std::uint64_t count,
                                std::vector<bool>& taken) {
    std::vector<std::uint64_t> result;
    for (const std::uint64_t node : nodes) {
        if (result.size() == count) break;
        if (node >= taken.size() || taken[node]) continue;
        taken[node] = true;
        result.push_back(node);
    }
    return result;
}

/// NCCL relays what goes to a GPU on another rail over the GPU on that rail, where NVLink joins all of a node
/// (PXN; NCCL_P2P_PXN_LEVEL is 2, always, unless set).
bool relays(const ClusterSpec& cluster) {
    return cluster.intra_node == IntraNode::nvswitch || cluster.intra_node == IntraNode::nvlink_mesh;
}

std::string describe_tree(const FabricSpec& fabric) {
    std::string text = fmt::format("{} switches of {} nodes, oversubscribed {} to 1",
                                   fabric.kind == FabricKind::rail_optimised ? "rail" : "leaf",
                                   fabric.nodes_per_leaf, fabric.leaf_oversubscription);
    if (fabric.leaves_per_pod > 0)
        text +=
            fmt::format(", pods of {} leaves, {} to 1", fabric.leaves_per_pod, fabric.pod_oversubscription);
    return text;
}

}  // namespace

FabricSpec fabric_of(const WhatIf& what_if) {
    if (what_if.fabric) return *what_if.fabric;
    FabricSpec fabric;
    if (!what_if.leaf_switches) return fabric;
    fabric.kind = FabricKind::fat_tree;
    fabric.nodes_per_leaf = what_if.leaf_switches->nodes;
    fabric.leaf_oversubscription = what_if.leaf_switches->oversubscription;
    return fabric;
}

std::uint64_t torus_nodes(const FabricSpec& torus) {
    std::uint64_t nodes = 1;
    for (const std::uint64_t size : torus.dimensions)
        nodes = checked_product(nodes, size, "nodes of the torus");
    return nodes;
}

std::string describe(const FabricSpec& fabric, const Placement& placement) {
    constexpr std::array<const char*, 3> words{"packed", "spread", "placed by its list"};
    const char* placed = words[static_cast<std::size_t>(placement.kind)];
    if (fabric.kind == FabricKind::single_switch) return fmt::format("one switch, the job {}", placed);
    if (fabric.kind == FabricKind::torus)
        return fmt::format("a torus of {} nodes, the job {}", fmt::join(fabric.dimensions, " × "), placed);
    return fmt::format("{}, the job {}", describe_tree(fabric), placed);
}

Placement background_placement(const WhatIf& what_if) {
    if (what_if.background && what_if.background->placement) return *what_if.background->placement;
    return {what_if.placement.kind == PlacementKind::list ? PlacementKind::packed : what_if.placement.kind,
            {}};
}

std::uint64_t nodes_in_use(const ClusterSpec& cluster) {
    return (cluster.gpus_used + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
}

FabricSites place_jobs(const WhatIf& what_if, std::uint64_t nodes, std::uint64_t background_nodes) {
    const FabricSpec fabric = fabric_of(what_if);
    if (fabric.kind == FabricKind::single_switch) return {};
    const bool torus = fabric.kind == FabricKind::torus;
    const std::uint64_t per_leaf = torus ? fabric.dimensions.front() : fabric.nodes_per_leaf;
    const Placement other = background_placement(what_if);
    const std::uint64_t least =
        torus ? torus_nodes(fabric)
              : std::max({nodes + background_nodes, highest(what_if.placement) + 1, highest(other) + 1});
    const std::uint64_t leaves = (least + per_leaf - 1) / per_leaf;
    FabricSites sites;
    sites.nodes = leaves * per_leaf;
    std::vector<bool> taken(sites.nodes, false);
    sites.job = take(order(what_if.placement, leaves, per_leaf), nodes, taken);
    sites.background = take(order(other, leaves, per_leaf), background_nodes, taken);
    return sites;
}

FabricRoutes fabric_routes(const WhatIf& what_if, const ClusterSpec& cluster, std::uint64_t nodes) {
    const std::uint64_t nics = nics_in_use(cluster);
    const double gpus_a_nic = static_cast<double>(cluster.gpus_per_node) / static_cast<double>(nics);
    return {fabric_of(what_if), nodes, nics, link_rates(cluster).nic_bytes_per_s * gpus_a_nic,
            relays(cluster)};
}

JobSites job_sites(const FabricRoutes& routes, const FabricSites& sites,
                   const std::vector<std::uint64_t>& own, const std::vector<std::uint64_t>& others) {
    JobSites result{routes, own, {}};
    if (others.empty()) return result;
    for (std::uint64_t rail = 0; rail < routes.rails(); ++rail) {
        std::vector<FabricPort> from, everywhere;
        for (const std::uint64_t node : others) from.push_back({node, rail});
        for (std::uint64_t node = 0; node < sites.nodes; ++node) everywhere.push_back({node, rail});
        routes.add_routes(result.others, from, everywhere, 1);
    }
    return result;
}

}  // namespace zeroplan
