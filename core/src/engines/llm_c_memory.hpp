#pragma once
#include <cstdint>

#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// llm.c's recompute levels (-r): 0 keeps everything, 1 computes GELU again, 2 the layer norms as well. A
/// scenario's recompute none, selective and full stand for them.
std::uint64_t llm_c_recompute_level(Recompute recompute);

/// Elements of llm.c's activation tensors for one micro-batch.
struct LlmCActivations {
    std::uint64_t compute = 0;  ///< in the compute dtype, logits left out
    std::uint64_t output = 0;   ///< logits, or whatever else that scratch tensor has to hold; compute dtype
    std::uint64_t fp32 = 0;     ///< layer norms' statistics, attention's, losses
    friend bool operator==(const LlmCActivations&, const LlmCActivations&) = default;
};
/// source: llm.c train_gpt2.cu, fill_in_activation_sizes
LlmCActivations llm_c_activations(const DecoderConfig& model, const TrainingConfig& training);

/// Ranks among which the optimizer's states are divided: all of them at stage 1, if they divide the
/// parameters; llm.c falls back to stage 0 otherwise. source: llm.c zero.cuh, set_zero_configs
std::uint64_t llm_c_shards(const ModelSpec& model, const TrainingConfig& training);

}  // namespace zeroplan
