#pragma once
#include "engines/megatron_rank_block.hpp"

namespace zeroplan {

/// Heads of one rank.
struct RankCoreShape {
    std::uint64_t heads = 0, key_heads = 0, key_dim = 0, value_dim = 0;
};

/// The attention core over query, key and value (one packed tensor, three, or a query beside a packed key and
/// value), by the scenario's kernel.
RankBlock::TensorId rank_attention_core(RankBlock& rank, const std::vector<RankBlock::TensorId>& qkv,
                                        const RankCoreShape& shape);

/// The attention of one layer on one rank: packed query, key and value with rotation and head norms, or
/// latent attention.
class RankAttention {
public:
    explicit RankAttention(RankBlock& rank);

    /// Declares the parameters in Megatron's registration order.
    void declare(const std::string& prefix);
    /// From the normed input to what the output projection returns.
    RankBlock::TensorId write(RankBlock::TensorId x);

private:
    using TensorId = RankBlock::TensorId;
    using Parameters = RankBlock::Parameters;

    void declare_latent(const std::string& prefix);
    std::vector<TensorId> packed_projection(TensorId x);
    std::vector<TensorId> latent_projections(TensorId x);
    std::vector<TensorId> rotated(TensorId packed);

    RankBlock& rank_;
    const MegatronContext& c_;
    const DecoderConfig& d_;
    std::uint64_t heads_, key_heads_, key_dim_, value_dim_;
    Parameters qkv_, query_norm_, key_norm_, projection_;
    Parameters query_down_, query_up_, key_value_down_, key_value_up_;
};

}  // namespace zeroplan
