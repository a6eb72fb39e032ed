#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "zeroplan/model_spec.hpp"

namespace zeroplan {

/// Parameters that Megatron-FSDP keeps in one flat buffer, which one collective gathers or reduces.
struct FsdpBucket {
    std::vector<std::uint32_t> parameters;  ///< indices into ModelSpec::parameters, in the buffer's order
    std::vector<std::uint64_t> offsets;     ///< of each, elements
    std::uint64_t chunk = 1;                ///< elements that no shard's boundary cuts
    std::uint64_t numel = 0;                ///< whole buffer, padding included
    std::uint64_t shards = 1;               ///< ranks that share it
    std::optional<std::uint32_t> unit;      ///< block of its FSDP unit; nullopt: of no unit
    bool experts = false;
    friend bool operator==(const FsdpBucket&, const FsdpBucket&) = default;
};

struct FsdpBucketOptions {
    bool pads = true;                                 ///< no_shard pads nothing, and has no units
    std::uint64_t shards = 1;                         ///< ranks that share dense parameters
    std::uint64_t expert_shards = 1;                  ///< and experts
    std::optional<std::uint64_t> bucket_size;         ///< elements; cuts what belongs to no unit
    std::optional<std::uint32_t> shared_embedding{};  ///< index of a tied one whose copy is on another stage
};

/// Buckets of parameters [first, end) of a pipeline stage's model, numbered as Megatron-FSDP numbers them:
/// one of dense and one of expert parameters a transformer layer, the rest cut at bucket_size.
/// source: megatron/core/distributed/fsdp/src/megatron_fsdp/param_and_grad_buffer.py
/// (_get_parameter_groups).
std::vector<FsdpBucket> fsdp_buckets(const ModelSpec& model, std::uint32_t first, std::uint32_t end,
                                     const FsdpBucketOptions& options);

/// Elements [begin, end) of one parameter that a rank of the bucket's group owns.
struct FsdpPiece {
    std::uint32_t parameter = 0;
    std::uint64_t begin = 0, end = 0;  ///< of the parameter
    std::uint64_t numel() const { return end - begin; }
    friend bool operator==(const FsdpPiece&, const FsdpPiece&) = default;
};

/// What rank `rank` owns of a bucket that is shared in `bucket.shards` equal slices, in the buffer's order.
std::vector<FsdpPiece> fsdp_pieces(const ModelSpec& model, const FsdpBucket& bucket, std::uint64_t rank);

/// The rank of `shards` that owns most elements of `buckets`, padding not counted; the lowest of equal ones.
std::uint64_t rank_that_owns_most(const ModelSpec& model, const std::vector<const FsdpBucket*>& buckets,
                                  std::uint64_t shards);

}  // namespace zeroplan
