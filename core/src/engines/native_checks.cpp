#include "engines/native_checks.hpp"

#include <fmt/format.h>

namespace zeroplan {
namespace {

[[noreturn]] void refuse(const char* key, std::string value, const char* way_out) {
    throw Error(ErrorCode::not_supported,
                fmt::format("the native engine doesn't support {} = {}", key, std::move(value)), way_out,
                {"", fmt::format("/training/{}", key)});
}

void check_degree(const char* key, std::uint64_t degree) {
    if (degree != 1) refuse(key, fmt::format("{}", degree), "set it to 1: this engine is data-parallel only");
}

void check_not_offloaded(const char* key, OffloadTarget target) {
    if (target != OffloadTarget::none)
        refuse(key, fmt::format("'{}'", to_string(target)),
               "set it to 'none': this engine keeps everything on the device");
}

void check_absent(const char* key, const std::string& json) {
    if (!json.empty()) refuse(key, json, "remove the key: it belongs to another engine");
}

void check_dtypes(const TrainingConfig& training) {
    const DType compute = training.compute_dtype;
    const auto word = [](DType dtype) { return fmt::format("'{}'", to_string(dtype)); };
    if (compute == DType::fp8) refuse("compute_dtype", word(compute), "use bf16, fp16, fp32 or tf32");
    const auto same_storage = [](DType a, DType b) {
        return a == b || bytes_per_element(a) + bytes_per_element(b) == 8;
    };
    if (!same_storage(training.parameter_dtype, compute))
        refuse("parameter_dtype", word(training.parameter_dtype),
               "leave it out: parameters are stored in compute_dtype");
    if (!same_storage(training.gradient_dtype, compute))
        refuse("gradient_dtype", word(training.gradient_dtype),
               "leave it out: gradients are stored in compute_dtype");
    if (!same_storage(training.reduce_dtype, compute))
        refuse("reduce_dtype", word(training.reduce_dtype),
               "leave it out: gradients are reduced as they are stored");
    if (training.optimizer_state_dtype != DType::fp32)
        refuse("optimizer_state_dtype", word(training.optimizer_state_dtype), "use fp32");
    const bool has_master = training.master_dtype.has_value();
    if (is_16_bit(compute) != has_master || (has_master && *training.master_dtype != DType::fp32))
        refuse("master_dtype", has_master ? word(*training.master_dtype) : "'none'",
               "leave it out: fp32 for 16-bit training, none for fp32");
}

void check_optimizer(const TrainingConfig& training) {
    if (training.optimizer_implementation != OptimizerImplementation::fused)
        refuse("optimizer_implementation", fmt::format("'{}'", to_string(training.optimizer_implementation)),
               "leave it out: the step works unit by unit, without temporaries");
    switch (training.optimizer) {
        case Optimizer::sgd:
        case Optimizer::sgd_momentum:
        case Optimizer::adam:
        case Optimizer::adamw:
            return;
        default:
            refuse("optimizer", fmt::format("'{}'", to_string(training.optimizer)),
                   "use sgd, sgd_momentum, adam or adamw");
    }
}

void check_kernels(const TrainingConfig& training) {
    if (training.recompute == Recompute::selective_op || !training.recompute_modules.empty())
        refuse(training.recompute_modules.empty() ? "recompute" : "recompute_modules",
               training.recompute_modules.empty() ? "'selective_op'"
                                                  : fmt::format("'{}', …", training.recompute_modules[0]),
               "use none, selective (attention core), selective_layer or full");
    if (training.kernels == Kernels::compiled) refuse("kernels", "'compiled'", "use fused or eager");
    if (training.loss == LossKernel::vocab_parallel)
        refuse("loss", "'vocab_parallel'",
               "use eager, fused or chunked: there is no tensor parallelism to split over");
}

}  // namespace

void check_native(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    check_degree("tensor_parallel", training.tensor_parallel);
    check_degree("pipeline_parallel", training.pipeline_parallel);
    check_degree("virtual_pipeline", training.virtual_pipeline);
    check_degree("context_parallel", training.context_parallel);
    check_degree("expert_parallel", training.expert_parallel);
    check_degree("expert_tensor_parallel", training.expert_tensor_parallel);
    check_degree("secondary_shard_group", training.secondary_shard_group);
    if (training.sequence_parallel)
        refuse("sequence_parallel", "true", "set it to false: there is no tensor parallelism");
    check_not_offloaded("offload_optimizer", training.offload_optimizer);
    check_not_offloaded("offload_parameters", training.offload_parameters);
    check_not_offloaded("offload_activations", training.offload_activations);
    check_not_offloaded("offload_gradients", training.offload_gradients);
    check_absent("adapter", training.adapter_json);
    check_absent("deepspeed", training.deepspeed_json);
    check_absent("megatron", training.megatron_json);
    check_absent("fp8", training.fp8_json);
    check_absent("moe", training.moe_json);
    if (!training.freeze.empty())
        refuse("freeze", fmt::format("'{}', …", training.freeze[0]),
               "remove it: this engine trains every parameter");
    if (training.async_tensor_parallel)
        refuse("async_tensor_parallel", "true", "set it to false: there is no tensor parallelism");
    check_dtypes(training);
    check_optimizer(training);
    check_kernels(training);
}

}  // namespace zeroplan
