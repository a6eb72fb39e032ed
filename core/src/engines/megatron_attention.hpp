#pragma once
#include "engines/megatron_rank_block.hpp"

namespace zeroplan {

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
