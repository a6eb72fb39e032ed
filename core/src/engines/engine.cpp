#include "engines/engine.hpp"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engines/engine_versions.hpp"
#include "engines/fp8_hardware.hpp"

namespace zeroplan {
namespace {

constexpr std::array engines{
    BuiltEngine{EngineKind::native, native_engine,
                "zeroplan's own: ZeRO 0 to 3, exact to the byte; plan, sim, run"},
    BuiltEngine{EngineKind::ddp, ddp_engine, "PyTorch DistributedDataParallel; plan, sim"},
    BuiltEngine{EngineKind::ddp_zero_optimizer, ddp_engine,
                "DDP with ZeroRedundancyOptimizer (ZeRO 1); plan, sim"},
    BuiltEngine{
        EngineKind::deepspeed, deepspeed_engine,
        "DeepSpeed (ZeRO 0 to 3) with ZeRO++, MiCS, offload, and Megatron-DeepSpeed's tensor and pipeline "
        "parallelism; plan, sim"},
    BuiltEngine{EngineKind::fsdp1, fsdp1_engine,
                "PyTorch FullyShardedDataParallel (ZeRO 0, 2, 3); plan, sim"},
    BuiltEngine{EngineKind::fsdp2, fsdp2_engine,
                "PyTorch fully_shard (ZeRO 2, 3) with tensor, pipeline, context parallelism; plan, sim"},
    BuiltEngine{EngineKind::llm_c, llm_c_engine, "llm.c's GPT-2 (ZeRO 0, 1); plan, sim"},
    BuiltEngine{
        EngineKind::megatron, megatron_engine,
        "Megatron-LM (ZeRO 0, 1) with tensor, pipeline, sequence, context, expert parallelism; plan, sim"},
    BuiltEngine{EngineKind::megatron_fsdp, megatron_fsdp_engine,
                "Megatron-FSDP (ZeRO 0 to 3) with Megatron-LM's parallelism; plan, sim"},
    BuiltEngine{EngineKind::single, ddp_engine, "one process on one GPU; plan, sim"},
};

std::vector<std::string_view> names() {
    std::vector<std::string_view> names;
    for (const BuiltEngine& engine : engines) names.push_back(to_string(engine.kind));
    return names;
}

}  // namespace

std::span<const BuiltEngine> built_engines() {
    return engines;
}

EngineOutput run_engine(const Scenario& scenario) {
    for (const BuiltEngine& engine : engines)
        if (engine.kind == scenario.training.engine) {
            check_fp8_hardware(scenario);
            EngineOutput output = engine.run(scenario);
            for (Warning& warning : version_warnings(scenario.training, output.rule_set))
                output.warnings.push_back(std::move(warning));
            return output;
        }
    throw Error(
        ErrorCode::not_supported,
        fmt::format("engine '{}' is not modelled by this version", to_string(scenario.training.engine)),
        fmt::format("use one of {}: --engine native is zeroplan's own runner", fmt::join(names(), ", ")),
        {"", "/training/engine"});
}

}  // namespace zeroplan
