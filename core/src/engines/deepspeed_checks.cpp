#include "engines/deepspeed_checks.hpp"

#include <fmt/format.h>

namespace zeroplan {
namespace {

void check_degree(const char* key, std::uint64_t degree) {
    if (degree != 1)
        throw Error(ErrorCode::not_supported,
                    fmt::format("engine deepspeed doesn't model {} = {}", key, degree),
                    "set it to 1, or choose engine megatron", {"", fmt::format("/training/{}", key)});
}

}  // namespace

void check_deepspeed(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    check_degree("context_parallel", training.context_parallel);
    check_degree("expert_parallel", training.expert_parallel);
    check_degree("virtual_pipeline", training.virtual_pipeline);
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
    if (!training.recompute_modules.empty())
        throw Error(ErrorCode::not_supported,
                    fmt::format("engine deepspeed doesn't model recompute_modules = '{}', …",
                                training.recompute_modules[0]),
                    "use recompute: none, selective, selective_op, selective_layer or full",
                    {"", "/training/recompute_modules"});
}

}  // namespace zeroplan
