#pragma once
#include <optional>

#include "architectures/block_builder.hpp"

namespace zeroplan {

/// Query, key and value, or one tensor that holds all three (query then is that tensor, key and value are not
/// set).
struct QueryKeyValue {
    std::vector<BlockBuilder::TensorId> tensors;
};

struct AttentionShape {
    std::uint64_t heads = 0, kv_heads = 0, head_dim = 0;
    std::uint64_t value_dim = 0;  ///< of a head where it isn't head_dim (latent attention)
    std::uint64_t query_width() const { return heads * head_dim; }
    std::uint64_t key_width() const { return kv_heads * head_dim; }
    /// Width of the attention's output.
    std::uint64_t output_width() const { return heads * (value_dim == 0 ? head_dim : value_dim); }
};

/// Rotary embedding of query and key: in place when fused, else into new tensors (value passes through).
QueryKeyValue rotary_embedding(BlockBuilder& block, const QueryKeyValue& qkv, const AttentionShape& shape,
                               bool fused);

/// Key and value copied once a query head (repeat_kv), as modules do that call attention with equal heads.
QueryKeyValue repeat_key_value(BlockBuilder& block, const QueryKeyValue& qkv, const AttentionShape& shape);

/// What a family does to its scores.
struct ScoreOptions {
    bool fp32_softmax = false;                     ///< eager kernels compute the softmax in fp32
    bool caps_scores = false;                      ///< cap · tanh(x / cap)
    std::optional<BlockBuilder::TensorId> bias{};  ///< added to the scores (T5's relative positions)
    /// One number a head that the softmax sees as one more token, whose share goes nowhere (gpt-oss); or
    /// none.
    std::vector<BlockBuilder::ParameterId> sinks{};
};

/// The attention core. Flash and sdpa are one fused kernel that saves q, k, v, its output and one fp32
/// log-sum-exp a head and token; eager writes scores and their softmax, heads · s² each. Operations count the
/// full s² (no causal halving), as published model flops do.
///
/// Selective recompute drops what Korthikanti et al. 2022 drop, the 5·heads·s² bytes of softmax and dropout;
/// the core's output stays, since the projection behind it saves it. Flash keeps nothing of that size, so
/// nothing of it is dropped.
///
/// With eager kernels as well, attention is what transformers' eager_attention_forward does: k and v are
/// repeated for heads that share them, and with `fp32_softmax` (its Llama family) the softmax is kept in fp32
/// beside its 16-bit copy. Under autocast it is fp32 for every family, and so is its dropout; the product
/// with the values casts.
BlockBuilder::TensorId attention_core(BlockBuilder& block, const QueryKeyValue& qkv,
                                      const AttentionShape& shape, const LoweringOptions& options,
                                      const ScoreOptions& scores);

}  // namespace zeroplan
