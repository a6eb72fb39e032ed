#include "engine_warnings.hpp"

#include <fmt/format.h>

#include "engines/megatron_context.hpp"

namespace zeroplan {
namespace {

void warn(Plan& plan, std::string text) {
    plan.warnings.push_back({"no_effect", std::move(text)});
}

/// source: deepspeed/runtime/zero/config.py, offload_param ("valid only with stage 3");
/// deepspeed/runtime/zero/stage_1_and_2.py, __init__ (cpu_offload whatever the device is)
void warn_of_deepspeed_offload(Plan& plan) {
    const TrainingConfig& t = plan.scenario.training;
    if (t.engine != EngineKind::deepspeed) return;
    if (t.offload_parameters != OffloadTarget::none && t.zero_stage < 3)
        warn(plan, fmt::format("offload_parameters = {} has no effect at zero_stage {}: DeepSpeed offloads "
                               "parameters at stage 3 alone",
                               to_string(t.offload_parameters), t.zero_stage));
    if (t.offload_optimizer == OffloadTarget::none) return;
    const bool on_nvme = t.offload_optimizer == OffloadTarget::nvme;
    if (on_nvme && t.zero_stage < 3)
        warn(plan, fmt::format("offload_optimizer = nvme has the effect of cpu at zero_stage {}: DeepSpeed "
                               "swaps to drives at stage 3 alone",
                               t.zero_stage));
    if (t.offload_fraction == 1) return;
    if (t.zero_stage < 3)
        warn(plan,
             fmt::format("offload_fraction = {} has no effect at zero_stage {}: DeepSpeed's ratio is of "
                         "stage 3's sub-groups",
                         t.offload_fraction, t.zero_stage));
    else if (on_nvme)
        warn(plan, fmt::format("offload_fraction = {} has no effect with offload_optimizer nvme: every "
                               "sub-group is swapped",
                               t.offload_fraction));
}

/// source: torch/distributed/fsdp/_fully_shard/_fully_shard.py (arguments of fully_shard)
void warn_of_fsdp1_keys(Plan& plan) {
    const TrainingConfig& t = plan.scenario.training;
    if (t.engine != EngineKind::fsdp2) return;
    if (t.fsdp.limit_all_gathers)
        warn(plan, fmt::format("fsdp.limit_all_gathers = {} has no effect: fully_shard has no rate limiter",
                               *t.fsdp.limit_all_gathers));
    if (t.fsdp.backward_prefetch.value_or("pre") != "pre")
        warn(plan, fmt::format("fsdp.backward_prefetch = {} has no effect: fully_shard gathers the next unit "
                               "before each backward",
                               *t.fsdp.backward_prefetch));
}

/// Megatron's rules alone count the tokens of experts that are loaded unevenly or drop some.
void warn_of_experts(Plan& plan) {
    const Scenario& scenario = plan.scenario;
    if (read_moe_options(scenario.training) == MoeOptions{}) return;
    const bool has_experts = scenario.model.experts.has_value();
    const EngineKind engine = scenario.training.engine;
    if (!has_experts)
        warn(plan, fmt::format("moe = {} has no effect: model {} has no experts", scenario.training.moe_json,
                               scenario.model.name));
    else if (engine != EngineKind::megatron && engine != EngineKind::megatron_fsdp)
        warn(plan, fmt::format("moe = {} has no effect with engine {}: its experts are planned with equal "
                               "numbers of tokens, all of which are computed",
                               scenario.training.moe_json, to_string(engine)));
}

void warn_of_fp8(Plan& plan) {
    const TrainingConfig& t = plan.scenario.training;
    if (!t.fp8_json.empty() && t.compute_dtype != DType::fp8)
        warn(plan, fmt::format("fp8 = {} has no effect with compute_dtype {}: it says how fp8 is computed",
                               t.fp8_json, to_string(t.compute_dtype)));
}

}  // namespace

void add_engine_warnings(Plan& plan) {
    warn_of_deepspeed_offload(plan);
    warn_of_fsdp1_keys(plan);
    warn_of_experts(plan);
    warn_of_fp8(plan);
}

}  // namespace zeroplan
