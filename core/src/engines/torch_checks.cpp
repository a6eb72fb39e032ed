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

/// FSDP2 divides the shard group into the smaller ones; the other engines have no second shard.
/// source: torch/distributed/fsdp/_fully_shard/_fsdp_init.py (_get_post_forward_mesh_info)
void check_second_group(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    const std::int64_t ranks = training.fsdp.reshard_after_forward.value_or(1);
    if (ranks <= 1) return;
    const ErrorPlace place{"", "/training/fsdp/reshard_after_forward"};
    if (training.engine != EngineKind::fsdp2)
        throw Error(ErrorCode::not_supported,
                    fmt::format("engine {} has no fsdp.reshard_after_forward = {} ranks",
                                to_string(training.engine), ranks),
                    "use true or false, or engine fsdp2", place);
    if (training.shard_group % static_cast<std::uint64_t>(ranks) != 0)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("fsdp.reshard_after_forward {} doesn't divide shard_group {}", ranks,
                                training.shard_group),
                    "use a divisor of shard_group, or true", place);
}

/// ZeroRedundancyOptimizer deals whole parameters to all ranks of DDP's group.
void check_zero_redundancy(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    const std::uint64_t ranks = training.data_parallel * training.context_parallel;
    if (training.engine == EngineKind::ddp_zero_optimizer && training.shard_group != ranks)
        refuse(scenario, "shard_group", fmt::format("{}", training.shard_group),
               "leave it out: its optimizer is sharded over all ranks");
}

/// torchao gathers in fp8 what it scales tensorwise. source: torchao/float8/config.py (Float8LinearConfig)
void check_fp8(const Scenario& scenario) {
    const std::string& fp8 = scenario.training.fp8_json;
    if (fp8.find("\"all_gather\":true") == std::string::npos) return;
    for (const char* recipe : {"rowwise", "mxfp8", "delayed"})
        if (fp8.find(fmt::format("\"{}\"", recipe)) != std::string::npos)
            refuse(scenario, "fp8", fmt::format("all_gather with recipe '{}'", recipe),
                   "gather in fp8 with recipe tensorwise, or set all_gather to false");
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
    check_second_group(scenario);
    check_zero_redundancy(scenario);
    check_fp8(scenario);
    const bool in_backward = training.optimizer_implementation == OptimizerImplementation::in_backward;
    if (in_backward && training.gradient_accumulation_steps > 1)
        refuse(scenario, "optimizer_implementation", "'in_backward'",
               "set gradient_accumulation_steps to 1: gradients are gone before they could be summed");
}

}  // namespace zeroplan
