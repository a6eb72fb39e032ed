#pragma once
#include "architectures/block_builder.hpp"

namespace zeroplan {

/// What a family does to its logits ahead of the loss.
struct LogitOptions {
    bool scales = false;  ///< multiplied by a number (Cohere)
    bool caps = false;    ///< cap · tanh(x / cap) (Gemma 2)
};

/// Output layer of `vocabulary` classes over `hidden` and its cross-entropy, by loss kernel:
/// - eager: logits, their fp32 copy (none where they are fp32) and an fp32 log-softmax; logits stay until the
/// loss's
///   backward, as a caller holds them
/// - fused: logits only; their gradient overwrites them
/// - chunked: an eighth of the tokens at a time, computed again in backward
/// Returns the loss tensor. vocab_parallel is eager here: dividing the vocabulary is the engine's matter.
BlockBuilder::TensorId output_layer_with_loss(BlockBuilder& block, BlockBuilder::TensorId x,
                                              std::uint64_t hidden, std::uint64_t vocabulary,
                                              std::vector<BlockBuilder::ParameterId> parameters,
                                              BlockBuilder::TensorId labels, const LoweringOptions& options,
                                              const LogitOptions& logits = {});

}  // namespace zeroplan
