#include "engines/deepspeed_checks.hpp"

#include <fmt/format.h>

#include "engines/deepspeed_options.hpp"
#include "engines/refusals.hpp"

namespace zeroplan {
namespace {

/// Outside ZeRO's own optimizers Muon's update is never made: its step adds the bare gradient.
/// source: runtime/zero/muon/muon_optimizer.py; stage3.py, __init__
void check_muon(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    if (training.optimizer != Optimizer::muon) return;
    const DeepSpeedWrapper wrapper = deepspeed_wrapper(training);
    if (wrapper != DeepSpeedWrapper::partitioned && wrapper != DeepSpeedWrapper::stage3)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("optimizer is muon, but at zero_stage {} with {} gradients DeepSpeed's Muon "
                                "makes no matrix orthogonal",
                                training.zero_stage, to_string(training.gradient_dtype)),
                    "choose zero_stage 2 or 3, or 1 with gradient_dtype as compute_dtype",
                    {"", "/training/optimizer"});
    if (training.offload_optimizer != OffloadTarget::none)
        throw Error(ErrorCode::not_supported, "engine deepspeed doesn't model muon with offload_optimizer",
                    "leave the offload out, or choose adamw", {"", "/training/optimizer"});
    if (training.zero_stage == 3 && read_deepspeed_options(scenario).reduce_scatter)
        throw Error(ErrorCode::invalid_input,
                    "optimizer is muon, but reduce_scatter true: DeepSpeed refuses both together at stage 3",
                    R"(add "deepspeed": {"zero_optimization": {"reduce_scatter": false}})",
                    {"", "/training/deepspeed/zero_optimization/reduce_scatter"});
}

}  // namespace

void check_deepspeed(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    constexpr const char* other_degree = "set it to 1, or choose engine megatron";
    refuse_degree(training, "context_parallel", training.context_parallel, other_degree);
    refuse_degree(training, "expert_parallel", training.expert_parallel, other_degree);
    refuse_degree(training, "virtual_pipeline", training.virtual_pipeline, other_degree);
    refuse_gradients_alone(training, training.offload_optimizer != OffloadTarget::none,
                           "DeepSpeed's gradients go to the host with its optimizer: set offload_optimizer");
    if (training.pipeline_parallel > 1 && training.zero_stage >= 2)
        throw Error(
            ErrorCode::invalid_input,
            fmt::format("zero_stage {} and pipeline_parallel {}: DeepSpeed's pipeline works with stages 0 "
                        "and 1 alone",
                        training.zero_stage, training.pipeline_parallel),
            "choose zero_stage 1, or pipeline_parallel 1", {"", "/training/zero_stage"});
    if (training.optimizer_implementation == OptimizerImplementation::in_backward)
        throw Error(ErrorCode::not_supported,
                    "engine deepspeed steps after backward, but optimizer_implementation is 'in_backward'",
                    "choose fused, foreach or for_loop", {"", "/training/optimizer_implementation"});
    check_muon(scenario);
    refuse_list(training, "recompute_modules", training.recompute_modules,
                "use recompute: none, selective, selective_op, selective_layer or full");
}

}  // namespace zeroplan
