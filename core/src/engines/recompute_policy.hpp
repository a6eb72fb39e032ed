#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/model_spec.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// What runs again in backward, and what is kept so that it needn't.
struct RecomputePolicy {
    /// By block: it runs again, and keeps its input and what `kept` names.
    std::vector<bool> checkpointed;
    /// By block kind and tensor: it comes out of an attention core that runs again alone (selective
    /// recompute).
    std::vector<std::vector<bool>> dropped;
    /// By block kind and tensor: it outlives a checkpointed block's forward.
    std::vector<std::vector<bool>> kept;
    /// By block kind and operator: running the block again has to run it.
    std::vector<std::vector<bool>> wanted;
};
RecomputePolicy recompute_policy(const ModelSpec& model, const TrainingConfig& training);

/// Tensors that the attention core reads and doesn't make itself, each once.
std::vector<std::uint32_t> attention_core_inputs(const BlockKind& kind);

}  // namespace zeroplan
