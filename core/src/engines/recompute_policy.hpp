#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "zeroplan/model_spec.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// Operators of a block kind that run again together, alone, right before backward reads what they made.
struct RecomputeSegment {
    std::vector<bool> operators;        ///< by operator
    std::vector<bool> made;             ///< by tensor: given up when forward has read it
    std::vector<std::uint32_t> inputs;  ///< tensors that they read and don't make themselves, each once
};
using RecomputeSegments = std::vector<RecomputeSegment>;

/// Nothing if backward reads nothing of what the operators make.
std::optional<RecomputeSegment> recompute_segment(const BlockKind& kind, std::vector<bool> operators);

/// What runs again in backward, and what is kept so that it needn't.
struct RecomputePolicy {
    /// By block: it runs again, and keeps its input and what `kept` names.
    std::vector<bool> checkpointed;
    /// By block kind: parts that run again alone (selective recompute: the attention core).
    std::vector<RecomputeSegments> segments;
    /// By block kind and tensor: it outlives a checkpointed block's forward.
    std::vector<std::vector<bool>> kept;
    /// By block kind and operator: running the block again has to run it.
    std::vector<std::vector<bool>> wanted;
};
RecomputePolicy recompute_policy(const ModelSpec& model, const TrainingConfig& training);

}  // namespace zeroplan
