#pragma once
#include "engines/megatron_model.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// The scenario as one rank sees it: parameters and tensors divided by tensor parallelism, its own tokens of
/// each sequence under context parallelism. Without either it is the scenario itself.
///
/// Tensor parallelism as torchtitan lays it out over DTensor: query, key, value, gate and up split by output,
/// attention's output and down by input, embedding and output layer by vocabulary, norms whole. With sequence
/// parallelism a norm's output is gathered once for the products that read it, which save the gathered copy,
/// and a row-parallel product's partial output is reduce-scattered.
/// source: torchtitan/parallelisms/parallelize_llama.py (apply_tp),
/// torch/distributed/tensor/parallel/style.py Throws Error{not_supported} for a model it can't split,
/// Error{invalid_input} where sizes don't divide.
Scenario rank_scenario(const Scenario& scenario);
/// One pipeline stage's part of a rank's scenario: the blocks of its chunks, one chunk after another.
struct TorchStage {
    Scenario scenario;
    std::vector<StageChunk> parts;    ///< which layers, embedding, head
    std::vector<ChunkBlocks> chunks;  ///< blocks of scenario.model
};
/// Throws as stage_chunks() does, and Error{not_supported} for models without transformer layers.
TorchStage torch_stage(const Scenario& rank, std::uint64_t stage);

/// Says in `output` what its programs refer to, where that isn't the whole scenario.
void add_rank_models(EngineOutput& output, const Scenario& whole, const Scenario& rank);

}  // namespace zeroplan
