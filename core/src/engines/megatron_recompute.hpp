#pragma once
#include <vector>

#include "engines/megatron_options.hpp"
#include "engines/recompute_policy.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// By block kind: what recompute_modules runs again (--recompute-granularity selective, --recompute-modules).
/// A module under `checkpoint` keeps its inputs; one under CheckpointWithoutOutput gives its output up as
/// soon as the next module has read it. Either is run again right before backward needs what it made. source:
/// megatron/core/transformer/transformer_layer.py, moe/moe_layer.py, moe/experts.py,
/// multi_latent_attention.py, megatron/core/tensor_parallel/random.py
std::vector<RecomputeSegments> megatron_segments(const ModelSpec& model, const TrainingConfig& training,
                                                 bool transformer_engine);

/// Throws Error for modules that the model hasn't, and for a contradiction with `recompute`.
void check_recompute_modules(const Scenario& scenario, const MegatronOptions& options);

}  // namespace zeroplan
