#include "engines/llm_c_checks.hpp"

#include <fmt/format.h>

#include "engines/refusals.hpp"

namespace zeroplan {
namespace {

constexpr const char* another_engine = "set it to 1, or choose engine megatron";
constexpr const char* on_device = "set it to 'none': llm.c keeps everything on the device";

[[noreturn]] void refuse_model(const char* place, std::string message, const char* way_out) {
    throw Error(ErrorCode::not_supported, std::move(message), way_out, {"", place});
}

void check_model(const ModelSpec& model) {
    const auto& decoder = model.decoder;
    if (!decoder || decoder->position_embedding != "learned" || decoder->normalization != "layernorm" ||
        decoder->mlp != "gelu")
        refuse_model("/model/model_type", fmt::format("llm.c trains GPT-2, not {}", model.architecture),
                     "choose a gpt2 model, or engine ddp");
    if (decoder->dropout)
        refuse_model("/model/dropout", "llm.c trains without dropout, but dropout is true",
                     "set it to false, or choose engine ddp");
}

void check_degrees(const TrainingConfig& t) {
    refuse_degree(t, "tensor_parallel", t.tensor_parallel, another_engine);
    refuse_degree(t, "pipeline_parallel", t.pipeline_parallel, another_engine);
    refuse_degree(t, "context_parallel", t.context_parallel, another_engine);
    refuse_degree(t, "expert_parallel", t.expert_parallel, another_engine);
    refuse_degree(t, "expert_tensor_parallel", t.expert_tensor_parallel, another_engine);
}

/// floatX of llm.c is one dtype for parameters, gradients and activations; both moments are fp32.
void check_dtypes(const TrainingConfig& t) {
    const auto word = [](DType dtype) { return fmt::format("'{}'", to_string(dtype)); };
    const DType stored = storage_dtype(t.compute_dtype);
    if (t.compute_dtype == DType::fp8) refuse(t, "compute_dtype", word(t.compute_dtype), "use bf16 or fp32");
    for (const auto& [key, dtype] : {std::pair{"parameter_dtype", t.parameter_dtype},
                                     {"gradient_dtype", t.gradient_dtype},
                                     {"reduce_dtype", t.reduce_dtype}})
        if (storage_dtype(dtype) != stored)
            refuse(t, key, word(dtype), "leave it out: llm.c stores and reduces in compute_dtype");
    if (t.optimizer_state_dtype != DType::fp32)
        refuse(t, "optimizer_state_dtype", word(t.optimizer_state_dtype), "use fp32");
}

void check_optimizer(const TrainingConfig& t) {
    if (t.optimizer != Optimizer::adamw && t.optimizer != Optimizer::adam)
        refuse(t, "optimizer", fmt::format("'{}'", to_string(t.optimizer)),
               "use adamw, the one that llm.c has");
    if (t.optimizer_implementation != OptimizerImplementation::fused)
        refuse(t, "optimizer_implementation", fmt::format("'{}'", to_string(t.optimizer_implementation)),
               "leave it out: llm.c steps in one fused kernel");
    refuse_list(t, "freeze", t.freeze, "remove it: llm.c trains every parameter");
    refuse_object(t, "adapter", t.adapter_json, "remove it, or choose engine ddp");
}

/// source: llm.c train_gpt2.cu, -r 0 (nothing), 1 (GELU), 2 (GELU and layer norms)
void check_kernels(const TrainingConfig& t) {
    constexpr const char* levels = "use none, selective (-r 1: GELU) or full (-r 2: GELU and layer norms)";
    refuse_word(t, "recompute", t.recompute, Recompute::selective_op, levels);
    refuse_word(t, "recompute", t.recompute, Recompute::selective_layer, levels);
    refuse_list(t, "recompute_modules", t.recompute_modules, "use recompute: none, selective or full");
    refuse_word(t, "kernels", t.kernels, Kernels::eager, "leave it out: llm.c has its own fused kernels");
    refuse_word(t, "kernels", t.kernels, Kernels::compiled, "leave it out: llm.c has its own fused kernels");
    refuse_word(t, "loss", t.loss, LossKernel::chunked, "use fused: llm.c's classifier is one kernel");
    refuse_word(t, "loss", t.loss, LossKernel::vocab_parallel, "use fused: llm.c's classifier is one kernel");
    refuse_word(t, "attention", t.attention, AttentionKernel::sdpa,
                "use flash (cuDNN's) or eager (llm.c's own)");
}

}  // namespace

void check_llm_c(const Scenario& scenario) {
    const TrainingConfig& t = scenario.training;
    check_model(scenario.model);
    check_degrees(t);
    check_dtypes(t);
    check_optimizer(t);
    check_kernels(t);
    refuse_object(t, "fp8", t.fp8_json, "remove it: llm.c has no fp8");
    refuse_object(t, "moe", t.moe_json, "remove it: llm.c has no experts");
    refuse_offload(t, "offload_optimizer", t.offload_optimizer, on_device);
    refuse_offload(t, "offload_parameters", t.offload_parameters, on_device);
    refuse_offload(t, "offload_activations", t.offload_activations, on_device);
    refuse_offload(t, "offload_gradients", t.offload_gradients, on_device);
}

}  // namespace zeroplan
