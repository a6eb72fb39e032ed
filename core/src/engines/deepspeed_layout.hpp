#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/model_spec.hpp"
#include "zeroplan/shard_layout.hpp"

namespace zeroplan {

/// DeepSpeed's stages 1 and 2 lay the trained parameters one after another and pad the end to a multiple of
/// 2 · ranks elements; partition r is the r-th equal part, and cuts through parameters where it falls.
/// source: deepspeed/runtime/zero/stage_1_and_2.py, nccl_start_alignment_factor, align_dense_tensors
struct FlatGroup {
    std::vector<PlacedParameter> parameters;  ///< in the order of the flat tensor
    std::uint64_t numel = 0, padded_numel = 0, ranks = 1;
    std::uint64_t partition() const { return padded_numel / ranks; }
    friend bool operator==(const FlatGroup&, const FlatGroup&) = default;
};

/// `round_robin`: parameter i goes to list i mod ranks, and the lists follow one another.
FlatGroup flat_group(const ModelSpec& model, std::uint64_t ranks, bool round_robin = false);

/// What of the parameters a rank's partition touches.
struct PartitionShare {
    std::uint64_t whole_numel = 0;    ///< of every parameter that the partition overlaps, whole
    std::uint64_t largest_piece = 0;  ///< elements of one parameter inside the partition
    std::vector<std::uint32_t> parameters;
    friend bool operator==(const PartitionShare&, const PartitionShare&) = default;
};
PartitionShare partition_share(const FlatGroup& group, const ModelSpec& model, std::uint64_t rank);

/// One rank that stands for itself and for others of its group.
struct RankClass {
    std::uint64_t representative = 0;
    std::vector<std::uint64_t> members;
    std::size_t shares = 1;  ///< different shares among the members: 1 is exact
    /// The representative's, with the largest whole_numel and the largest piece of any member.
    PartitionShare share{};
};
/// Ranks by what their partitions overlap. At most `most` classes: beyond, ranks that are next to each other
/// in size stand together under the largest of them.
std::vector<RankClass> ranks_by_share(const FlatGroup& group, const ModelSpec& model, std::size_t most);

/// Stage 3 partitions each parameter by itself: ⌈n / ranks⌉ elements on every rank.
/// source: deepspeed/runtime/zero/partition_parameters.py, _partition_param
std::uint64_t stage3_shard_numel(std::uint64_t numel, std::uint64_t ranks);

/// The unit of every parameter by itself, and the group's flat tensor behind them.
ShardLayout deepspeed_layout(const ModelSpec& model, const FlatGroup& group);

}  // namespace zeroplan
