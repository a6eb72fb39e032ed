#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/caching_allocator_options.hpp"
#include "zeroplan/dtype.hpp"

namespace zeroplan {

enum class EngineKind : std::uint8_t {
    native,
    ddp,
    ddp_zero_optimizer,
    deepspeed,
    fsdp1,
    fsdp2,
    megatron,
    megatron_fsdp,
    llm_c,
    single
};
enum class Optimizer : std::uint8_t {
    sgd,
    sgd_momentum,
    adam,
    adamw,
    adamw_8bit,
    adamw_4bit,
    adamw_fp8,
    adafactor,
    lion,
    muon,
    adagrad,
    lamb,
    none
};
enum class OptimizerImplementation : std::uint8_t { fused, foreach, for_loop, in_backward };
enum class Recompute : std::uint8_t { none, selective, selective_op, selective_layer, full };
enum class AttentionKernel : std::uint8_t { flash, sdpa, eager };
enum class LossKernel : std::uint8_t { eager, fused, chunked, vocab_parallel };
enum class Kernels : std::uint8_t { eager, fused, compiled };
enum class PipelineSchedule : std::uint8_t { one_f_one_b, gpipe, interleaved };
enum class OffloadTarget : std::uint8_t { none, cpu, nvme };
enum class GradientSync : std::uint8_t { always, last };

/// fsdp.* keys of a scenario.
struct FsdpOptions {
    std::optional<std::int64_t> reshard_after_forward;  ///< 0 false, 1 true, else ranks of the second shard
    std::optional<std::string> wrap;                    ///< layer | layer+embedding+output | root
    std::optional<bool> limit_all_gathers;
    std::optional<std::string> backward_prefetch;  ///< pre | post | none
    std::optional<GradientSync> gradient_sync;
    friend bool operator==(const FsdpOptions&, const FsdpOptions&) = default;
};

/// `training` of a scenario, every default filled in (docs/scenario.md has them).
/// Sizes are counts; degrees are ≥ 1. Objects that no engine of this version reads are kept as JSON text so
/// that they are not lost when the scenario is written back.
struct TrainingConfig {
    EngineKind engine = EngineKind::native;
    std::uint32_t zero_stage = 0;
    std::uint64_t data_parallel = 1, shard_group = 1, secondary_shard_group = 1;
    std::uint64_t tensor_parallel = 1, pipeline_parallel = 1, virtual_pipeline = 1, context_parallel = 1,
                  expert_parallel = 1, expert_tensor_parallel = 1;
    bool sequence_parallel = false;
    PipelineSchedule pipeline_schedule = PipelineSchedule::one_f_one_b;
    std::uint64_t micro_batch_size = 1, gradient_accumulation_steps = 1, sequence_length = 1;
    DType compute_dtype = DType::bf16, parameter_dtype = DType::bf16, gradient_dtype = DType::bf16,
          reduce_dtype = DType::bf16;
    std::optional<DType> master_dtype = DType::fp32;  ///< nullopt: the stored parameter is the master
    Optimizer optimizer = Optimizer::adamw;
    DType optimizer_state_dtype = DType::fp32;
    OptimizerImplementation optimizer_implementation = OptimizerImplementation::fused;
    Recompute recompute = Recompute::none;
    std::uint64_t recompute_every = 1;
    std::vector<std::string> recompute_modules;
    AttentionKernel attention = AttentionKernel::flash;
    LossKernel loss = LossKernel::eager;
    Kernels kernels = Kernels::fused;
    OffloadTarget offload_optimizer = OffloadTarget::none, offload_parameters = OffloadTarget::none,
                  offload_activations = OffloadTarget::none, offload_gradients = OffloadTarget::none;
    double offload_fraction = 1;
    bool async_tensor_parallel = false;
    std::vector<std::uint64_t> pipeline_layout;
    std::vector<std::string> freeze;
    FsdpOptions fsdp;
    CachingAllocatorOptions allocator;  ///< of the engines that run on PyTorch
    std::string engine_version;
    std::string adapter_json, deepspeed_json, megatron_json, fp8_json, moe_json;  ///< "" = absent
    friend bool operator==(const TrainingConfig&, const TrainingConfig&) = default;
};

/// States that an optimizer keeps per owned element: 0 sgd, 1 momentum and lion …, 2 adam and adamw.
/// Throws Error{not_supported} for those whose state is not a whole number of tensors of the parameter's
/// size.
std::uint32_t optimizer_state_tensors(Optimizer optimizer);

/// True where fp32 parameters train under torch.autocast: engines without a mixed precision of their own.
bool uses_autocast(const TrainingConfig& training);

std::string_view to_string(EngineKind);
std::string_view to_string(Optimizer);
std::string_view to_string(OptimizerImplementation);
std::string_view to_string(Recompute);
std::string_view to_string(AttentionKernel);
std::string_view to_string(LossKernel);
std::string_view to_string(Kernels);
std::string_view to_string(PipelineSchedule);
std::string_view to_string(OffloadTarget);
std::string_view to_string(GradientSync);

}  // namespace zeroplan
