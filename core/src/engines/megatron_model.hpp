#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engines/megatron_options.hpp"
#include "zeroplan/model_spec.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// Consecutive layers of one model chunk, and whether it begins with the embedding or ends with the head.
struct StageChunk {
    std::uint64_t first_layer = 0, layers = 0;
    bool embedding = false, head = false;
    friend bool operator==(const StageChunk&, const StageChunk&) = default;
};

/// Chunks of pipeline stage `stage`: chunk c is virtual stage c · p + stage. Layers are split evenly unless
/// pipeline_layout says otherwise. Throws Error{invalid_input} where they can't be.
std::vector<StageChunk> stage_chunks(const TrainingConfig& training, std::uint64_t layers,
                                     std::uint64_t stage);

/// Blocks [first, last] of the stage's model that one chunk runs.
struct ChunkBlocks {
    std::uint32_t first = 0, last = 0;
};

/// What one rank of a pipeline stage holds and runs.
struct StageModel {
    ModelSpec model;  ///< sizes divided by tensor, sequence and expert parallelism; tokens are the rank's own
    std::vector<ChunkBlocks> chunks;
    std::vector<std::uint32_t> first_parameter;  ///< of each chunk; parameters of a chunk follow one another
    std::uint64_t memory_buffer_elements = 0;  ///< Megatron's global memory buffer, compute dtype; 0: unused
    /// Index of a tied word embedding whose other copy is on another stage: the table of the first stage, the
    /// output layer's weight of the last. source: LanguageModule.setup_embeddings_and_output_layer
    std::optional<std::uint32_t> tied_copy{};
};

/// The part of the decoder that a rank of the stage holds.
///
/// Column-parallel linears hold out / t columns, row-parallel ones in / t rows; norms and the biases of
/// row-parallel linears are whole. With sequence parallelism what lies between them (norms, residuals,
/// dropouts, embedding output) is divided by t as well. source: megatron/core/transformer,
/// megatron/core/tensor_parallel, transformer_engine/pytorch/module.
StageModel megatron_stage_model(const Scenario& scenario, const MegatronOptions& options,
                                const std::vector<StageChunk>& chunks);

}  // namespace zeroplan
