#include <algorithm>
#include <vector>

#include "zeroplan/collective_cost.hpp"

namespace zeroplan {
namespace {

/// The worse of two groups: more nodes, then fewer rails, then a fuller node.
bool spread_worse(const GroupPlacement& a, const GroupPlacement& b) {
    if (a.nodes != b.nodes) return a.nodes > b.nodes;
    if (a.rails != b.rails) return a.rails < b.rails;
    return a.ranks_per_node > b.ranks_per_node;
}

/// Ranks first, first + stride, …: `count` of them.
GroupPlacement place(std::uint64_t first, std::uint64_t stride, std::uint64_t count, std::uint64_t per_node) {
    GroupPlacement placement{.ranks = count, .nodes = 0, .ranks_per_node = 0, .rails = count};
    std::uint64_t on_node = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t node = (first + i * stride) / per_node;
        ++on_node;
        if (i + 1 < count && (first + (i + 1) * stride) / per_node == node) continue;
        ++placement.nodes;
        placement.ranks_per_node = std::max(placement.ranks_per_node, on_node);
        placement.rails = std::min(placement.rails, on_node);
        on_node = 0;
    }
    return placement;
}

GroupPlacement worst_shard_group(std::uint64_t size, std::uint64_t world, std::uint64_t per_node) {
    if (per_node % size == 0) return {size, 1, size, size};
    if (size % per_node == 0) return {size, size / per_node, per_node, per_node};
    GroupPlacement worst = place(0, 1, size, per_node);
    // Groups start at different places of a node, and the pattern repeats after per_node groups at the
    // latest.
    const std::uint64_t groups = std::min(world / size, per_node);
    for (std::uint64_t g = 1; g < groups; ++g) {
        const GroupPlacement next = place(g * size, 1, size, per_node);
        if (spread_worse(next, worst)) worst = next;
    }
    return worst;
}

}  // namespace

GroupPlacement group_placement(GroupKind group, std::uint64_t shard_group, const ClusterSpec& cluster) {
    const std::uint64_t world = cluster.gpus_used;
    const std::uint64_t per_node = std::max<std::uint64_t>(1, std::min(cluster.gpus_per_node, world));
    switch (group) {
        case GroupKind::shard_group:
            return worst_shard_group(shard_group, world, per_node);
        case GroupKind::replica_group:
            return place(0, shard_group, world / shard_group, per_node);
        case GroupKind::world:
            return worst_shard_group(world, world, per_node);
    }
    return {};
}

}  // namespace zeroplan
