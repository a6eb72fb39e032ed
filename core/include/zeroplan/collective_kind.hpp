#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace zeroplan {

enum class CollectiveKind : std::uint8_t { all_gather, reduce_scatter, all_reduce, broadcast, all_to_all };
std::string_view to_string(CollectiveKind kind);

/// Which ranks take part. Ranks are numbered tensor first, then context, data, pipeline (Megatron's order
/// tp-cp-ep-dp-pp, torchtitan's and DeepSpeed's meshes alike); groups lie inside one pipeline stage, all but
/// embedding_group.
enum class GroupKind : std::uint8_t {
    shard_group,            ///< all that share one copy of the sharded state
    replica_group,          ///< the same slice over the replicas
    world,                  ///< everybody
    tensor_group,           ///< ranks that split every layer
    context_group,          ///< ranks that split every sequence
    expert_group,           ///< ranks that split the experts
    expert_data_group,      ///< ranks that hold the same experts
    secondary_shard_group,  ///< neighbours in the shard group that share a second copy (ZeRO++ hpZ, FSDP2)
    embedding_group  ///< the same place on a pipeline's first and last stage: copies of a tied embedding
};
inline constexpr std::size_t group_kind_count = 9;
std::string_view to_string(GroupKind group);

}  // namespace zeroplan
