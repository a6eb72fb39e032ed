#pragma once
#include <cstdint>
#include <vector>

#include "engines/torch_units.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Rows of a parameter on one rank: Shard(0), the first dimension in chunks of ⌈d0/N⌉.
struct RowShard {
    std::uint64_t padded = 0;  ///< elements every rank stores
    std::uint64_t owned = 0;   ///< elements of this rank without padding
    std::vector<std::uint64_t> shape;
};

RowShard row_shard(const Parameter& parameter, std::uint64_t ranks, std::uint64_t rank);

ShardLayout fsdp2_layout(const ModelSpec& model, const TorchUnits& units, std::uint64_t ranks);

/// Ranks of the shard group by what they own; equal ones together, the lowest first.
std::vector<std::vector<std::uint64_t>> fsdp2_ranks_by_ownership(const ModelSpec& model, std::uint64_t ranks);

/// World ranks of members of every shard group: tensor-parallel ranks are neighbours, groups follow.
std::vector<RankRange> fsdp2_world_ranks(const std::vector<std::uint64_t>& members, std::uint64_t group,
                                         std::uint64_t tensor_parallel, std::uint64_t world);

}  // namespace zeroplan
