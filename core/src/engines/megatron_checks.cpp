#include "engines/megatron_checks.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "engines/megatron_recompute.hpp"
#include "engines/refusals.hpp"

namespace zeroplan {
namespace {

[[noreturn]] void contradicts(const char* key, std::string message, const char* way_out) {
    throw Error(ErrorCode::invalid_input, std::move(message), way_out,
                {"", fmt::format("/training/{}", key)});
}

bool has_experts(const Scenario& scenario) {
    return scenario.model.decoder && scenario.model.decoder->experts;
}

void check_trained(const TrainingConfig& t) {
    refuse_object(
        t, "adapter", t.adapter_json,
        "remove it to plan full training, or choose engine fsdp2, ddp or deepspeed, which plan adapters");
    refuse_list(t, "freeze", t.freeze,
                "remove it, or choose engine fsdp2, ddp or deepspeed, which plan frozen parameters");
}

/// source: megatron/core/optimizer/__init__.py: FusedAdam and FusedSGD of Transformer Engine or Apex, Lion of
/// emerging_optimizers in the newest releases; megatron/training/arguments.py (--optimizer)
void check_optimizer(const TrainingConfig& t) {
    for (const Optimizer missing : {Optimizer::adagrad, Optimizer::lamb})
        refuse_word(t, "optimizer", t.optimizer, missing,
                    "use adamw, adam, sgd_momentum, sgd or lion: Megatron-LM has no other of them");
    if (t.optimizer_implementation != OptimizerImplementation::fused)
        refuse(t, "optimizer_implementation", fmt::format("'{}'", to_string(t.optimizer_implementation)),
               "leave it out: Megatron steps after backward, with fused kernels");
    if (t.engine == EngineKind::megatron && storage_dtype(t.reduce_dtype) != storage_dtype(t.gradient_dtype))
        contradicts(
            "reduce_dtype",
            fmt::format("reduce_dtype is '{}', but Megatron reduces its gradient buffers as they are: "
                        "gradient_dtype is '{}'",
                        to_string(t.reduce_dtype), to_string(t.gradient_dtype)),
            "set gradient_dtype, too (--accumulate-allreduce-grads-in-fp32), or leave it out");
}

void check_kernels(const TrainingConfig& t) {
    refuse_word(t, "recompute", t.recompute, Recompute::selective_op,
                "that is torchtitan's policy; use none, selective, selective_layer or full");
    refuse_word(t, "kernels", t.kernels, Kernels::compiled,
                "use fused (Transformer Engine) or eager (transformer_impl local)");
    refuse_word(t, "attention", t.attention, AttentionKernel::sdpa,
                "use flash (FlashAttention or cuDNN's) or eager (unfused)");
    refuse_word(t, "loss", t.loss, LossKernel::chunked,
                "use eager or vocab_parallel (Megatron's own) or fused (Transformer Engine's)");
    if (t.fp8_json.find("\"all_gather\":true") != std::string::npos)
        refuse(t, "fp8/all_gather", "true (--fp8-param-gather)",
               "set it to false: parameters stay and travel in 16 bit");
}

/// source: megatron/training/arguments.py: --optimizer-cpu-offload needs --use-precision-aware-optimizer, and
/// that the distributed optimizer
void check_offload(const TrainingConfig& t) {
    refuse_word(t, "offload_optimizer", t.offload_optimizer, OffloadTarget::nvme,
                "use 'cpu', or choose engine deepspeed");
    if (t.engine == EngineKind::megatron_fsdp || t.zero_stage == 0)
        refuse_offload(
            t, "offload_optimizer", t.offload_optimizer,
            "set it to 'none', or choose engine megatron with zero_stage 1, the distributed optimizer");
    if (t.offload_optimizer != OffloadTarget::none && t.optimizer != Optimizer::adam &&
        t.optimizer != Optimizer::adamw)
        refuse(t, "optimizer", fmt::format("'{}' with offload_optimizer", to_string(t.optimizer)),
               "set it to 'adamw', the one that Megatron offloads, or offload_optimizer to 'none'");
    refuse_offload(t, "offload_parameters", t.offload_parameters,
                   "set it to 'none', or choose engine deepspeed, fsdp1 or fsdp2");
    refuse_offload(t, "offload_gradients", t.offload_gradients,
                   "set it to 'none': Megatron's gradient buffers stay on the device");
}

/// source: megatron/training/arguments.py, validate_args
void check_parallelism(const Scenario& scenario, const MegatronOptions& options) {
    const TrainingConfig& t = scenario.training;
    if (t.expert_parallel > 1 && !has_experts(scenario))
        contradicts("expert_parallel",
                    fmt::format("expert_parallel is {}, but {} has no experts", t.expert_parallel,
                                scenario.model.architecture),
                    "set it to 1, or choose a model with experts");
    const bool overlaps = t.async_tensor_parallel || options.tensor_parallel_overlap.value_or(false);
    if (overlaps && t.tensor_parallel > 1 && !t.sequence_parallel)
        contradicts("async_tensor_parallel",
                    "async_tensor_parallel (--tp-comm-overlap) needs sequence_parallel, which is false",
                    "set sequence_parallel to true, or async_tensor_parallel to false");
    if (t.async_tensor_parallel && options.tensor_parallel_overlap == false)
        contradicts("async_tensor_parallel",
                    "async_tensor_parallel is true, but megatron.tp_comm_overlap is false",
                    "keep one of the two");
    if (t.virtual_pipeline > 1 && t.pipeline_parallel == 2 && options.overlap_messages == false)
        contradicts("megatron/overlap_p2p_comm",
                    "overlap_p2p_comm is false, but an interleaved schedule on 2 stages needs it: both "
                    "neighbours of a stage are the same rank",
                    "set it to true, or pipeline_parallel to 3 or more");
}

}  // namespace

void check_megatron(const Scenario& scenario, const MegatronOptions& options) {
    const TrainingConfig& t = scenario.training;
    check_trained(t);
    check_optimizer(t);
    check_kernels(t);
    check_recompute_modules(scenario, options);
    check_offload(t);
    check_parallelism(scenario, options);
}

std::vector<Warning> megatron_warnings(const Scenario& scenario, const MegatronOptions& options) {
    const TrainingConfig& t = scenario.training;
    std::vector<Warning> warnings;
    const auto no_effect = [&](const char* key, const std::string& value) {
        warnings.push_back({"no_effect", fmt::format("{} = {} has no effect: {} has no experts", key, value,
                                                     scenario.model.architecture)});
    };
    if (!has_experts(scenario)) {
        if (t.expert_tensor_parallel != t.tensor_parallel)
            no_effect("expert_tensor_parallel", fmt::format("{}", t.expert_tensor_parallel));
    }
    const auto& modules = t.recompute_modules;
    const bool latent = scenario.model.decoder && scenario.model.decoder->latent_attention;
    if (options.transformer_engine && !has_experts(scenario) && !latent &&
        std::find(modules.begin(), modules.end(), "norm") != modules.end())
        warnings.push_back({"no_effect",
                            "recompute_modules' norm has no effect: Transformer Engine's linears contain the "
                            "norms of a dense layer"});
    const bool interleaves = t.pipeline_parallel > 1 && t.virtual_pipeline > 1;
    if (options.overlap_messages == true && !interleaves)
        warnings.push_back(
            {"no_effect",
             "megatron's overlap_p2p_comm = true has no effect: Megatron overlaps the messages "
             "of interleaved schedules alone"});
    const MegatronOptions fp32{};
    if (t.offload_optimizer != OffloadTarget::none && t.offload_fraction > 0 &&
        (options.main_params_dtype != fp32.main_params_dtype || options.exp_avg_dtype != fp32.exp_avg_dtype ||
         options.exp_avg_sq_dtype != fp32.exp_avg_sq_dtype))
        warnings.push_back({"no_effect",
                            "megatron's main_params_dtype, exp_avg_dtype and exp_avg_sq_dtype have no effect "
                            "with offload_optimizer: HybridDeviceOptimizer keeps all of them in fp32"});
    if (t.fp8_json.find("\"mxfp8\"") != std::string::npos)
        warnings.push_back(
            {"fp8_recipe",
             "mxfp8 is planned as tensorwise scaling is: its scales, a byte every 32 elements, "
             "and its second copy of every weight for backward are not counted"});
    return warnings;
}

Scenario without_idle_keys(Scenario scenario) {
    TrainingConfig& t = scenario.training;
    if (t.pipeline_parallel > 1 || t.virtual_pipeline == 1) return scenario;
    t.virtual_pipeline = 1;
    t.pipeline_schedule = PipelineSchedule::one_f_one_b;
    t.pipeline_layout.clear();
    return scenario;
}

}  // namespace zeroplan
