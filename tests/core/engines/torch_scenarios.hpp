#pragma once
#include "core/architectures/decoder_configs.hpp"
#include "zeroplan/build_model.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan {

inline LoweringOptions torch_lowering(Kernels kernels = Kernels::eager) {
    return {.attention = AttentionKernel::sdpa,
            .loss = LossKernel::eager,
            .kernels = kernels,
            .dropout = false,
            .torch_modules = true};
}

/// fp32 parameters, bf16 compute, AdamW, one micro-batch of one sequence.
inline Scenario torch_scenario(EngineKind engine, ModelSpec model, std::uint64_t ranks, std::uint32_t stage) {
    Scenario scenario{.model = std::move(model)};
    TrainingConfig& training = scenario.training;
    training.engine = engine;
    training.zero_stage = stage;
    training.data_parallel = ranks;
    training.shard_group = stage < 2 ? 1 : ranks;
    training.sequence_length = 64;
    training.compute_dtype = DType::bf16;
    training.parameter_dtype = training.gradient_dtype = training.reduce_dtype = DType::fp32;
    training.master_dtype = std::nullopt;
    training.optimizer = Optimizer::adamw;
    training.kernels = Kernels::eager;
    training.attention = AttentionKernel::sdpa;
    scenario.cluster.gpu = {.name = "test",
                            .memory_usable = Bytes{1ULL << 40},
                            .bf16_flop_per_s = 1e15,
                            .compute_capability = 90};
    scenario.cluster.gpus_used = ranks;
    return scenario;
}

}  // namespace zeroplan
