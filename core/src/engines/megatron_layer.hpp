#pragma once
#include "architectures/block_builder.hpp"
#include "engines/megatron_context.hpp"

namespace zeroplan {

/// Layers that one checkpoint covers: recompute full with recompute_every (or recompute_num_layers).
std::uint64_t layers_recomputed_together(const TrainingConfig& training, const MegatronOptions& options);

/// Word embedding (a slice of the vocabulary), learned positions, dropout.
BlockTemplate megatron_embedding(const MegatronContext& context);
/// `count` transformer layers from number `first` on, as one block.
BlockTemplate megatron_layers(const MegatronContext& context, std::uint64_t first, std::uint64_t count);
/// The norm behind an encoder whose output a decoder reads.
BlockTemplate megatron_encoder_end(const MegatronContext& context);
/// One layer of a decoder that attends to an encoder as well; `context` is of_decoder().
BlockTemplate megatron_cross_layer(const MegatronContext& context);
/// Final norm, output layer and loss; for BERT its masked-language-model head and the classes of a sequence.
BlockTemplate megatron_head(const MegatronContext& context);

/// Elements of the buffer that Megatron keeps for gathered inputs of its own linears (output layer with
/// sequence parallelism) and for the scores of its own attention. source: GlobalMemoryBuffer.
std::uint64_t memory_buffer_elements(const MegatronContext& context, bool has_head);

}  // namespace zeroplan
