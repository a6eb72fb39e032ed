#include <algorithm>
#include <vector>

#include "cost/group_shape.hpp"

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

/// The worst of the groups of `count` ranks, each `stride` behind the one before, that fill the world.
GroupPlacement worst_group(std::uint64_t stride, std::uint64_t count, std::uint64_t world,
                           std::uint64_t per_node) {
    const std::uint64_t span = stride * count;
    if (per_node % span == 0) return {count, 1, count, count};
    if (stride % per_node == 0) return {count, count, 1, 1};
    if (per_node % stride == 0 && span % per_node == 0)
        return {count, span / per_node, per_node / stride, per_node / stride};
    GroupPlacement worst = place(0, stride, count, per_node);
    // Groups start at different places of a node, and the pattern repeats after per_node groups at the
    // latest.
    const std::uint64_t groups = std::min(world / span, per_node);
    for (std::uint64_t g = 1; g < groups; ++g) {
        const GroupPlacement next = place(g * span, stride, count, per_node);
        if (spread_worse(next, worst)) worst = next;
    }
    return worst;
}

/// The worst of the pairs of a rank of a pipeline's first stage and the one at its place on the last,
/// `stride` ranks behind. Ranks of less than a node apart may share one.
GroupPlacement worst_pair(std::uint64_t stage, std::uint64_t stride, std::uint64_t per_node) {
    GroupPlacement worst = place(0, stride, 2, per_node);
    for (std::uint64_t r = 1; r < std::min(stage, per_node); ++r) {
        const GroupPlacement next = place(r, stride, 2, per_node);
        if (spread_worse(next, worst)) worst = next;
    }
    return worst;
}

/// ZeRO++'s secondary copy, or FSDP2's shards of a smaller group between forward and backward.
std::uint64_t secondary_group(const TrainingConfig& training) {
    const std::int64_t resharded = training.fsdp.reshard_after_forward.value_or(0);
    return training.engine == EngineKind::fsdp2 && resharded > 1 ? static_cast<std::uint64_t>(resharded)
                                                                 : training.secondary_shard_group;
}

/// Bridges join the cards 2i and 2i + 1 of a node: whether of groups with two ranks on a node both are always
/// one such pair.
bool all_bridged(const GroupShape& shape, std::uint64_t per_node) {
    return shape.stride == 1 && (per_node == 2 || (shape.count == 2 && per_node % 2 == 0));
}

}  // namespace

GroupSizes group_sizes(const TrainingConfig& training, std::uint64_t shard_group) {
    return {.shard = shard_group,
            .tensor = training.tensor_parallel,
            .context = training.context_parallel,
            .pipeline = training.pipeline_parallel,
            .expert = training.expert_parallel,
            .expert_tensor = training.expert_parallel > 1 || training.expert_tensor_parallel > 1
                                 ? training.expert_tensor_parallel
                                 : training.tensor_parallel,
            .secondary_shard = secondary_group(training)};
}

GroupShape group_shape(GroupKind group, const GroupSizes& sizes, std::uint64_t world) {
    const std::uint64_t stage = std::max<std::uint64_t>(1, world / sizes.pipeline);
    const auto over = [](std::uint64_t stride, std::uint64_t count) {
        return GroupShape{stride, std::max<std::uint64_t>(1, count)};
    };
    switch (group) {
        case GroupKind::shard_group:
            return over(sizes.tensor, sizes.shard);
        case GroupKind::replica_group:
            return over(sizes.tensor * sizes.shard, stage / (sizes.tensor * sizes.shard));
        case GroupKind::world:
            return over(1, world);
        case GroupKind::tensor_group:
            return over(1, sizes.tensor);
        case GroupKind::context_group:
            return over(sizes.tensor, sizes.context);
        case GroupKind::expert_group:
            return over(sizes.expert_tensor, sizes.expert);
        case GroupKind::expert_data_group:
            return over(sizes.expert_tensor * sizes.expert, stage / (sizes.expert_tensor * sizes.expert));
        case GroupKind::secondary_shard_group:
            return over(sizes.tensor, sizes.secondary_shard);
        case GroupKind::embedding_group:
            return sizes.pipeline > 1 ? over(stage * (sizes.pipeline - 1), 2) : over(1, 1);
    }
    return {};
}

GroupPlacement group_placement(GroupKind group, const GroupSizes& sizes, const ClusterSpec& cluster) {
    const std::uint64_t world = cluster.gpus_used;
    const std::uint64_t per_node = std::max<std::uint64_t>(1, std::min(cluster.gpus_per_node, world));
    const GroupShape shape = group_shape(group, sizes, world);
    const bool pair = group == GroupKind::embedding_group && shape.count == 2;
    GroupPlacement placement = pair ? worst_pair(world / sizes.pipeline, shape.stride, per_node)
                                    : worst_group(shape.stride, shape.count, world, per_node);
    placement.bridged = cluster.intra_node == IntraNode::nvlink_pairs && placement.ranks_per_node == 2 &&
                        all_bridged(shape, per_node);
    return placement;
}

GroupPlacement group_placement(GroupKind group, std::uint64_t shard_group, const ClusterSpec& cluster) {
    return group_placement(group, GroupSizes{.shard = shard_group}, cluster);
}

}  // namespace zeroplan
