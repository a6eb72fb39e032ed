#include "zeroplan/training_config.hpp"

#include <array>

#include <fmt/format.h>

#include "zeroplan/error.hpp"
#include "zeroplan/words.hpp"

namespace zeroplan {
namespace {

constexpr std::array engines{
    Word<EngineKind>{EngineKind::native, "native"},
    Word<EngineKind>{EngineKind::ddp, "ddp"},
    Word<EngineKind>{EngineKind::ddp_zero_optimizer, "ddp_zero_optimizer"},
    Word<EngineKind>{EngineKind::deepspeed, "deepspeed"},
    Word<EngineKind>{EngineKind::fsdp1, "fsdp1"},
    Word<EngineKind>{EngineKind::fsdp2, "fsdp2"},
    Word<EngineKind>{EngineKind::megatron, "megatron"},
    Word<EngineKind>{EngineKind::megatron_fsdp, "megatron_fsdp"},
    Word<EngineKind>{EngineKind::llm_c, "llm_c"},
    Word<EngineKind>{EngineKind::single, "single"},
};
constexpr std::array optimizers{
    Word<Optimizer>{Optimizer::sgd, "sgd"},
    Word<Optimizer>{Optimizer::sgd_momentum, "sgd_momentum"},
    Word<Optimizer>{Optimizer::adam, "adam"},
    Word<Optimizer>{Optimizer::adamw, "adamw"},
    Word<Optimizer>{Optimizer::adamw_8bit, "adamw_8bit"},
    Word<Optimizer>{Optimizer::adamw_4bit, "adamw_4bit"},
    Word<Optimizer>{Optimizer::adamw_fp8, "adamw_fp8"},
    Word<Optimizer>{Optimizer::adafactor, "adafactor"},
    Word<Optimizer>{Optimizer::lion, "lion"},
    Word<Optimizer>{Optimizer::muon, "muon"},
    Word<Optimizer>{Optimizer::adagrad, "adagrad"},
    Word<Optimizer>{Optimizer::lamb, "lamb"},
    Word<Optimizer>{Optimizer::none, "none"},
};
constexpr std::array implementations{
    Word<OptimizerImplementation>{OptimizerImplementation::fused, "fused"},
    Word<OptimizerImplementation>{OptimizerImplementation::foreach, "foreach"},
    Word<OptimizerImplementation>{OptimizerImplementation::for_loop, "for_loop"},
    Word<OptimizerImplementation>{OptimizerImplementation::in_backward, "in_backward"},
};
constexpr std::array recomputes{
    Word<Recompute>{Recompute::none, "none"},
    Word<Recompute>{Recompute::selective, "selective"},
    Word<Recompute>{Recompute::selective_op, "selective_op"},
    Word<Recompute>{Recompute::selective_layer, "selective_layer"},
    Word<Recompute>{Recompute::full, "full"},
};
constexpr std::array attention_kernels{
    Word<AttentionKernel>{AttentionKernel::flash, "flash"},
    Word<AttentionKernel>{AttentionKernel::sdpa, "sdpa"},
    Word<AttentionKernel>{AttentionKernel::eager, "eager"},
};
constexpr std::array loss_kernels{
    Word<LossKernel>{LossKernel::eager, "eager"},
    Word<LossKernel>{LossKernel::fused, "fused"},
    Word<LossKernel>{LossKernel::chunked, "chunked"},
    Word<LossKernel>{LossKernel::vocab_parallel, "vocab_parallel"},
};
constexpr std::array kernels{
    Word<Kernels>{Kernels::eager, "eager"},
    Word<Kernels>{Kernels::fused, "fused"},
    Word<Kernels>{Kernels::compiled, "compiled"},
};
constexpr std::array schedules{
    Word<PipelineSchedule>{PipelineSchedule::one_f_one_b, "1f1b"},
    Word<PipelineSchedule>{PipelineSchedule::gpipe, "gpipe"},
    Word<PipelineSchedule>{PipelineSchedule::interleaved, "interleaved"},
};
constexpr std::array offload_targets{
    Word<OffloadTarget>{OffloadTarget::none, "none"},
    Word<OffloadTarget>{OffloadTarget::cpu, "cpu"},
    Word<OffloadTarget>{OffloadTarget::nvme, "nvme"},
};
constexpr std::array gradient_syncs{
    Word<GradientSync>{GradientSync::always, "always"},
    Word<GradientSync>{GradientSync::last, "last"},
};

}  // namespace

template <>
std::span<const Word<EngineKind>> words() {
    return engines;
}
std::string_view to_string(EngineKind value) {
    return word_of(value);
}

template <>
std::span<const Word<Optimizer>> words() {
    return optimizers;
}
std::string_view to_string(Optimizer value) {
    return word_of(value);
}

template <>
std::span<const Word<OptimizerImplementation>> words() {
    return implementations;
}
std::string_view to_string(OptimizerImplementation value) {
    return word_of(value);
}

template <>
std::span<const Word<Recompute>> words() {
    return recomputes;
}
std::string_view to_string(Recompute value) {
    return word_of(value);
}

template <>
std::span<const Word<AttentionKernel>> words() {
    return attention_kernels;
}
std::string_view to_string(AttentionKernel value) {
    return word_of(value);
}

template <>
std::span<const Word<LossKernel>> words() {
    return loss_kernels;
}
std::string_view to_string(LossKernel value) {
    return word_of(value);
}

template <>
std::span<const Word<Kernels>> words() {
    return kernels;
}
std::string_view to_string(Kernels value) {
    return word_of(value);
}

template <>
std::span<const Word<PipelineSchedule>> words() {
    return schedules;
}
std::string_view to_string(PipelineSchedule value) {
    return word_of(value);
}

template <>
std::span<const Word<OffloadTarget>> words() {
    return offload_targets;
}
std::string_view to_string(OffloadTarget value) {
    return word_of(value);
}

template <>
std::span<const Word<GradientSync>> words() {
    return gradient_syncs;
}
std::string_view to_string(GradientSync value) {
    return word_of(value);
}

std::uint32_t optimizer_state_tensors(Optimizer optimizer) {
    switch (optimizer) {
        case Optimizer::sgd:
        case Optimizer::none:
            return 0;
        case Optimizer::sgd_momentum:
        case Optimizer::lion:
        case Optimizer::adagrad:
            return 1;
        case Optimizer::adam:
        case Optimizer::adamw:
        case Optimizer::lamb:
            return 2;
        // Quantised states carry scales, adafactor keeps row and column sums, and muon treats matrices and
        // vectors differently.
        case Optimizer::adamw_8bit:
        case Optimizer::adamw_4bit:
        case Optimizer::adamw_fp8:
        case Optimizer::adafactor:
        case Optimizer::muon:
            break;
    }
    throw Error(
        ErrorCode::not_supported,
        fmt::format("the states of optimizer {} are not modelled by this version", to_string(optimizer)),
        "use adamw for an estimate from above, or sgd, sgd_momentum, adam, lion, adagrad, lamb",
        {"", "/training/optimizer"});
}

bool uses_autocast(const TrainingConfig& training) {
    const bool plain_modules = training.engine == EngineKind::single || training.engine == EngineKind::ddp ||
                               training.engine == EngineKind::ddp_zero_optimizer;
    return plain_modules && bytes_per_element(training.parameter_dtype) == 4 &&
           bytes_per_element(storage_dtype(training.compute_dtype)) == 2;
}

}  // namespace zeroplan
