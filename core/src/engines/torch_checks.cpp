#include "engines/torch_checks.hpp"

#include <fmt/format.h>

#include "engines/refusals.hpp"
#include "engines/torch_step.hpp"

namespace zeroplan {
namespace {

void check_degree(const Scenario& scenario, const char* key, std::uint64_t degree) {
    refuse_degree(scenario.training, key, degree, "set it to 1, or choose engine megatron");
}

void check_target(const Scenario& scenario, const char* key, OffloadTarget target) {
    if (target == OffloadTarget::nvme)
        refuse(scenario.training, key, "'nvme'", "use 'cpu', or engine deepspeed, which offloads to NVMe");
}

/// FSDP takes gradients to the host with their parameters, torchao's CPUOffloadOptimizer as soon as they are
/// complete: it can't sum them over micro-batches, and hands them to no other rank.
void check_gradients(const TrainingConfig& training) {
    if (training.engine == EngineKind::fsdp1 || training.engine == EngineKind::fsdp2)
        return refuse_gradients_alone(
            training, training.offload_parameters != OffloadTarget::none,
            "gradients go to the host with the parameters: set offload_parameters to 'cpu'");
    const bool stepped_on_host = training.offload_optimizer != OffloadTarget::none &&
                                 training.offload_fraction == 1 && !pages_states(training);
    refuse_gradients_alone(
        training,
        training.engine == EngineKind::single && stepped_on_host && training.gradient_accumulation_steps == 1,
        "set it to 'none', or use engine single with offload_optimizer 'cpu', offload_fraction 1 and one "
        "micro-batch a step");
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
        refuse(scenario.training, "shard_group", fmt::format("{}", training.shard_group),
               "leave it out: its optimizer is sharded over all ranks");
}

/// torchao gathers in fp8 what it scales tensorwise. source: torchao/float8/config.py (Float8LinearConfig)
void check_fp8(const Scenario& scenario) {
    const std::string& fp8 = scenario.training.fp8_json;
    if (fp8.find("\"all_gather\":true") == std::string::npos) return;
    for (const char* recipe : {"rowwise", "mxfp8", "delayed"})
        if (fp8.find(fmt::format("\"{}\"", recipe)) != std::string::npos)
            refuse(scenario.training, "fp8", fmt::format("all_gather with recipe '{}'", recipe),
                   "gather in fp8 with recipe tensorwise, or set all_gather to false");
}

/// Its matrices are on the device and whole, or sharded by rows.
void check_muon(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    if (training.optimizer != Optimizer::muon) return;
    if (training.engine == EngineKind::fsdp1)
        refuse(scenario.training, "optimizer", "'muon'",
               "use engine fsdp2: a flat parameter's shards are no matrices any more");
    if (training.offload_optimizer != OffloadTarget::none ||
        training.offload_parameters != OffloadTarget::none)
        refuse(scenario.training, "optimizer", "'muon' with offload",
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
    check_gradients(training);
    if (training.master_dtype)
        refuse(training, "master_dtype", fmt::format("'{}'", to_string(*training.master_dtype)),
               "leave it out: these engines' optimizers update the stored parameters");
    refuse_list(training, "recompute_modules", training.recompute_modules,
                "use recompute: none, selective, selective_op, selective_layer or full");
    if (training.loss == LossKernel::vocab_parallel && training.tensor_parallel == 1)
        refuse(training, "loss", "'vocab_parallel'",
               "use eager, fused or chunked: there is no tensor parallelism to split over");
    check_muon(scenario);
    check_second_group(scenario);
    check_zero_redundancy(scenario);
    check_fp8(scenario);
    const bool in_backward = training.optimizer_implementation == OptimizerImplementation::in_backward;
    if (in_backward && training.gradient_accumulation_steps > 1)
        refuse(training, "optimizer_implementation", "'in_backward'",
               "set gradient_accumulation_steps to 1: gradients are gone before they could be summed");
}

}  // namespace zeroplan
