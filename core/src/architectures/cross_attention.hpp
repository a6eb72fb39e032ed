#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "architectures/attention.hpp"
#include "architectures/decoder_names.hpp"

namespace zeroplan {

/// Attention of a decoder's tokens to an encoder's output.
class CrossAttention {
public:
    using TensorId = BlockBuilder::TensorId;

    /// `context_width`: of the encoder's output.
    CrossAttention(BlockBuilder& block, const DecoderConfig& config, const DecoderNames& names,
                   const LoweringOptions& options, std::uint64_t context_width);

    void declare();
    /// Queries of the layer's own tokens, keys and values of the encoder's.
    TensorId write(TensorId x, const ScoreOptions& scores);

    /// The encoder's output, once write() has named it.
    std::optional<TensorId> context() const { return context_; }
    /// Tensors of the encoder's length, and of both.
    const std::vector<TensorId>& from_context() const { return from_context_; }
    const std::vector<TensorId>& crossing() const { return crossing_; }

private:
    using Parameters = std::vector<BlockBuilder::ParameterId>;

    TensorId project_context(const std::string& name, const Parameters& parameters);

    BlockBuilder& block_;
    const DecoderConfig& config_;
    const DecoderNames& names_;
    const LoweringOptions& options_;
    std::uint64_t context_width_;
    AttentionShape shape_;
    Parameters query_, key_, value_, output_;
    std::optional<TensorId> context_;
    std::vector<TensorId> from_context_, crossing_;
};

}  // namespace zeroplan
