#include "engines/torch_checks.hpp"

#include <fmt/format.h>

namespace zeroplan {
namespace {

[[noreturn]] void refuse(const Scenario& scenario, const char* key, const std::string& value,
                         const char* way_out) {
    throw Error(
        ErrorCode::not_supported,
        fmt::format("engine {} doesn't model {} = {}", to_string(scenario.training.engine), key, value),
        way_out, {"", fmt::format("/training/{}", key)});
}

void check_degree(const Scenario& scenario, const char* key, std::uint64_t degree) {
    if (degree != 1)
        refuse(scenario, key, fmt::format("{}", degree), "set it to 1, or choose engine megatron");
}

void check_target(const Scenario& scenario, const char* key, OffloadTarget target) {
    if (target == OffloadTarget::nvme)
        refuse(scenario, key, "'nvme'", "use 'cpu', or engine deepspeed, which offloads to NVMe");
}

/// Its matrices are on the device and whole, or sharded by rows.
void check_muon(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    if (training.optimizer != Optimizer::muon) return;
    if (training.engine == EngineKind::fsdp1)
        refuse(scenario, "optimizer", "'muon'",
               "use engine fsdp2: a flat parameter's shards are no matrices any more");
    if (training.offload_optimizer != OffloadTarget::none ||
        training.offload_parameters != OffloadTarget::none)
        refuse(scenario, "optimizer", "'muon' with offload",
               "leave the offload out: its matrix products run on the GPU");
}

}  // namespace

void check_torch(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    if (training.engine != EngineKind::fsdp2)
        check_degree(scenario, "tensor_parallel", training.tensor_parallel);
    if (training.engine != EngineKind::fsdp2)
        check_degree(scenario, "pipeline_parallel", training.pipeline_parallel);
    check_degree(scenario, "expert_parallel", training.expert_parallel);
    check_degree(scenario, "secondary_shard_group", training.secondary_shard_group);
    check_target(scenario, "offload_optimizer", training.offload_optimizer);
    check_target(scenario, "offload_parameters", training.offload_parameters);
    if (training.master_dtype)
        refuse(scenario, "master_dtype", fmt::format("'{}'", to_string(*training.master_dtype)),
               "leave it out: these engines' optimizers update the stored parameters");
    if (!training.recompute_modules.empty())
        refuse(scenario, "recompute_modules", fmt::format("'{}', …", training.recompute_modules[0]),
               "use recompute: none, selective, selective_op, selective_layer or full");
    if (training.loss == LossKernel::vocab_parallel && training.tensor_parallel == 1)
        refuse(scenario, "loss", "'vocab_parallel'",
               "use eager, fused or chunked: there is no tensor parallelism to split over");
    check_muon(scenario);
    const bool in_backward = training.optimizer_implementation == OptimizerImplementation::in_backward;
    if (in_backward && training.gradient_accumulation_steps > 1)
        refuse(scenario, "optimizer_implementation", "'in_backward'",
               "set gradient_accumulation_steps to 1: gradients are gone before they could be summed");
}

}  // namespace zeroplan
