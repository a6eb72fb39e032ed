#pragma once
#include "architectures/block_builder.hpp"
#include "architectures/decoder_names.hpp"

namespace zeroplan {

/// What an encoder-decoder's layers have beside a decoder's.
struct TransformerLayerExtras {
    std::uint64_t relative_buckets = 0;  ///< the layer holds the table of relative positions
    std::uint64_t context_width = 0;     ///< of the encoder's output that the layer attends to; 0: none
    std::uint64_t length = 0;            ///< tokens of the layer's own sequences; 0: the training's
    bool rotates = true;                 ///< false: a layer without rotary embedding among others with one
};

/// One transformer layer: attention and MLP (or experts) with their norms and residuals, in the places and
/// the order that the configuration says. Throws Error{invalid_input} for a word it doesn't know.
BlockTemplate transformer_layer(const DecoderConfig& config, const DecoderNames& names,
                                const LoweringOptions& options, bool has_experts = false,
                                const TransformerLayerExtras& extras = {});

/// Weight and, for LayerNorm with biases, bias of a norm.
std::vector<BlockBuilder::ParameterId> norm_parameters(BlockBuilder& block, const DecoderConfig& config,
                                                       const std::string& module, std::uint64_t width);
/// Which kernel the configuration's norms are.
NormKernel norm_kernel(const DecoderConfig& config, const LoweringOptions& options);

}  // namespace zeroplan
