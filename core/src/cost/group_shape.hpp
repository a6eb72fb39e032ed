#pragma once
#include <cstdint>

#include "zeroplan/collective_cost.hpp"

namespace zeroplan {

/// Groups of `count` ranks, each `stride` behind the one before, that fill the world one after the other.
/// Where a group reaches beyond the world (embedding_group of a pipeline's middle stages), its rank is alone.
struct GroupShape {
    std::uint64_t stride = 1, count = 1;
    /// Which of the groups `rank` belongs to; numbers have gaps.
    std::uint64_t group_of(std::uint64_t rank) const {
        const std::uint64_t span = stride * count;
        return rank / span * span + rank % stride;
    }
};

/// Ranks fill nodes in order, numbered tensor, context, data, pipeline; `world` is everybody.
GroupShape group_shape(GroupKind group, const GroupSizes& sizes, std::uint64_t world);

}  // namespace zeroplan
