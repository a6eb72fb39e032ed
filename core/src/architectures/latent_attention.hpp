#pragma once
#include "architectures/attention.hpp"

namespace zeroplan {

/// Multi-head latent attention as DeepSeek's classes write it: low-rank projections with a norm between down
/// and up, and a rotated part of the key that all heads share.
class LatentAttention {
public:
    using TensorId = BlockBuilder::TensorId;

    LatentAttention(BlockBuilder& block, const LatentAttentionConfig& config, std::uint64_t hidden,
                    std::uint64_t heads, NormKernel norm)
        : block_(block), config_(config), hidden_(hidden), heads_(heads), norm_(norm) {}

    AttentionShape shape() const {
        return {heads_, heads_, config_.key_dim + config_.rope_dim, config_.value_dim};
    }
    void declare(bool bias);
    /// Query, key and value of every head.
    QueryKeyValue write(TensorId x);
    const std::vector<BlockBuilder::ParameterId>& output() const { return output_; }

private:
    using Parameters = std::vector<BlockBuilder::ParameterId>;

    BlockBuilder& block_;
    const LatentAttentionConfig& config_;
    std::uint64_t hidden_, heads_;
    NormKernel norm_;
    Parameters query_down_, query_norm_, query_up_, key_value_down_, key_value_norm_, key_value_up_, output_;
};

}  // namespace zeroplan
