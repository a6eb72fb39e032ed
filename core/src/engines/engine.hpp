#pragma once
#include <span>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Layout and programs of the scenario's engine. Throws Error{not_supported} for an engine that isn't built.
EngineOutput run_engine(const Scenario& scenario);

/// An engine that is built and what of its jobs is covered.
struct BuiltEngine {
    EngineKind kind = EngineKind::native;
    EngineOutput (*run)(const Scenario&) = nullptr;
    const char* summary = "";  ///< stages and parallelism planned, and whether sim and run take it
};
std::span<const BuiltEngine> built_engines();

/// The engine of zeroplan's own runner (runner/): ZeRO 0 to 3 on one flat buffer a layer.
EngineOutput native_engine(const Scenario& scenario);

/// Megatron-LM and megatron-core: one program a pipeline stage.
EngineOutput megatron_engine(const Scenario& scenario);
/// Megatron-core's own fully sharded data parallelism (Megatron-FSDP, once custom FSDP).
EngineOutput megatron_fsdp_engine(const Scenario& scenario);
/// One process, DistributedDataParallel, or that with ZeroRedundancyOptimizer.
EngineOutput ddp_engine(const Scenario& scenario);
/// PyTorch's FullyShardedDataParallel (FSDP1).
EngineOutput fsdp1_engine(const Scenario& scenario);
/// DeepSpeed's ZeRO stages, alone or under Megatron-DeepSpeed.
EngineOutput deepspeed_engine(const Scenario& scenario);
/// llm.c: GPT-2 in C and CUDA.
EngineOutput llm_c_engine(const Scenario& scenario);
/// PyTorch's fully_shard (FSDP2).
EngineOutput fsdp2_engine(const Scenario& scenario);

}  // namespace zeroplan
