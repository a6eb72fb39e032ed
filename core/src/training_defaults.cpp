#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "training_input.hpp"

namespace zeroplan {
namespace {

struct StageRule {
    std::span<const std::uint32_t> stages;
    std::uint32_t by_default;
};

StageRule stage_rule(EngineKind engine) {
    static constexpr std::uint32_t all[] = {0, 1, 2, 3}, zero[] = {0}, one[] = {1}, zero_one[] = {0, 1};
    static constexpr std::uint32_t fsdp1[] = {0, 2, 3}, fsdp2[] = {2, 3};
    switch (engine) {
        case EngineKind::single:
        case EngineKind::ddp:
            return {zero, 0};
        case EngineKind::ddp_zero_optimizer:
            return {one, 1};
        case EngineKind::fsdp1:
            return {fsdp1, 3};
        case EngineKind::fsdp2:
            return {fsdp2, 3};
        case EngineKind::megatron:
        case EngineKind::llm_c:
            return {zero_one, 0};
        case EngineKind::megatron_fsdp:
            return {all, 3};
        case EngineKind::native:
        case EngineKind::deepspeed:
            break;
    }
    return {all, 0};
}

std::uint32_t zero_stage(const TrainingInput& input) {
    const StageRule rule = stage_rule(input.config.engine);
    const std::uint32_t stage = input.zero_stage.value_or(input.own.zero_stage.value_or(rule.by_default));
    const ErrorPlace place{input.place.file, input.place.pointer + "/zero_stage"};
    if (input.own.zero_stage && stage != *input.own.zero_stage)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("zero_stage is {}, but {} means stage {}", stage, input.own.zero_stage_key,
                                *input.own.zero_stage),
                    "remove one of the two", place);
    if (std::find(rule.stages.begin(), rule.stages.end(), stage) == rule.stages.end())
        throw Error(ErrorCode::invalid_input,
                    fmt::format("engine {} has no ZeRO stage {}", to_string(input.config.engine), stage),
                    fmt::format("its stages: {}", fmt::join(rule.stages, ", ")), place);
    return stage;
}

struct DTypes {
    DType parameter, gradient, reduce;
    std::optional<DType> master;
    Kernels kernels;
};

/// `compute` is what tensors are stored in when the engine trains with 16 bits.
DTypes default_dtypes(EngineKind engine, DType compute, const OwnWords& own) {
    switch (engine) {
        case EngineKind::native:
        case EngineKind::llm_c:
            return {compute, compute, compute, DType::fp32, Kernels::fused};
        case EngineKind::deepspeed:
            return {compute, own.gradient_dtype.value_or(compute), own.reduce_dtype.value_or(compute),
                    DType::fp32, Kernels::eager};
        case EngineKind::megatron:
        case EngineKind::megatron_fsdp:
            return {compute, DType::fp32, DType::fp32, DType::fp32, Kernels::fused};
        case EngineKind::single:
        case EngineKind::ddp:
        case EngineKind::ddp_zero_optimizer:
        case EngineKind::fsdp1:
        case EngineKind::fsdp2:
            break;
    }
    return {DType::fp32, DType::fp32, DType::fp32, std::nullopt, Kernels::eager};
}

/// fp8 is for matrix products only; everything that is stored is bf16 then.
DType stored_compute_dtype(DType compute) {
    if (compute == DType::fp8) return DType::bf16;
    return compute == DType::tf32 ? DType::fp32 : compute;
}

void fill_in_dtypes(TrainingConfig& config, const TrainingInput& input) {
    DTypes defaults = default_dtypes(config.engine, stored_compute_dtype(config.compute_dtype), input.own);
    if (stored_compute_dtype(config.compute_dtype) == DType::fp32)
        defaults = {DType::fp32, DType::fp32, DType::fp32, std::nullopt, defaults.kernels};
    config.parameter_dtype = input.parameter_dtype.value_or(defaults.parameter);
    config.master_dtype = defaults.master;
    if (input.master_dtype == StatedMaster::fp32) config.master_dtype = DType::fp32;
    if (input.master_dtype == StatedMaster::none) config.master_dtype.reset();
    config.gradient_dtype = input.gradient_dtype.value_or(defaults.gradient);
    // These engines reduce in the dtype that they accumulate in unless told otherwise.
    const bool follows_gradient = config.engine == EngineKind::native || config.engine == EngineKind::llm_c ||
                                  config.engine == EngineKind::megatron ||
                                  config.engine == EngineKind::megatron_fsdp;
    config.reduce_dtype =
        input.reduce_dtype.value_or(follows_gradient ? config.gradient_dtype : defaults.reduce);
    config.kernels = input.kernels.value_or(defaults.kernels);
}

PipelineSchedule schedule(const TrainingInput& input) {
    const bool chunks = input.config.virtual_pipeline > 1;
    const PipelineSchedule by_default =
        chunks ? PipelineSchedule::interleaved : PipelineSchedule::one_f_one_b;
    const PipelineSchedule chosen = input.pipeline_schedule.value_or(by_default);
    if (chunks != (chosen == PipelineSchedule::interleaved))
        throw Error(ErrorCode::invalid_input,
                    fmt::format("pipeline_schedule {} contradicts virtual_pipeline {}", to_string(chosen),
                                input.config.virtual_pipeline),
                    "interleaved goes with virtual_pipeline of at least 2, the others with 1",
                    {input.place.file, input.place.pointer + "/pipeline_schedule"});
    return chosen;
}

}  // namespace

TrainingConfig with_engine_defaults(const TrainingInput& input) {
    TrainingConfig config = input.config;
    config.zero_stage = zero_stage(input);
    config.pipeline_schedule = schedule(input);
    fill_in_dtypes(config, input);
    if (config.engine == EngineKind::native && !config.fsdp.gradient_sync)
        config.fsdp.gradient_sync = config.zero_stage >= 2 ? GradientSync::always : GradientSync::last;
    return config;
}

void check_compute_dtype(const TrainingConfig& config, const GpuSpec& gpu, const ErrorPlace& training) {
    const DType wanted = config.compute_dtype;
    if (gpu.is_host || wanted == DType::fp32 || peak_flop_per_s(gpu, wanted) > 0) return;
    const DType instead = peak_flop_per_s(gpu, DType::bf16) > 0   ? DType::bf16
                          : peak_flop_per_s(gpu, DType::fp16) > 0 ? DType::fp16
                                                                  : DType::fp32;
    throw Error(ErrorCode::invalid_input,
                fmt::format("GPU {} has no {} arithmetic, but compute_dtype is {}", gpu.name,
                            to_string(wanted), to_string(wanted)),
                fmt::format("{} works on it: --dtype {}, or \"compute_dtype\": \"{}\"", to_string(instead),
                            to_string(instead), to_string(instead)),
                {training.file, training.pointer + "/compute_dtype"});
}

}  // namespace zeroplan
