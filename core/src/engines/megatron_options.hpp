#pragma once
#include <cstdint>
#include <optional>

#include "zeroplan/dtype.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// Which of Megatron's rules apply. `core`: megatron-core. `lm_2021`: Megatron-LM before megatron-core (its
/// engine_version starts with "megatron-lm 20", up to 2021): outputs of a pipeline stage are kept, gradients
/// stand in 16 bit beside each parameter, and nothing comes from Transformer Engine.
enum class MegatronGeneration : std::uint8_t { core, lm_2021 };

/// `training.megatron`, under Megatron's own flag names, with Megatron's defaults.
struct MegatronOptions {
    MegatronGeneration generation = MegatronGeneration::core;
    bool transformer_engine = true;            ///< transformer_impl; false: local
    bool gradient_accumulation_fusion = true;  ///< weight gradients are added to main_grad by the GEMM itself
    bool overlap_grad_reduce = false, overlap_param_gather = false;
    bool deterministic_mode = false;
    std::uint64_t num_distributed_optimizer_instances = 1;
    bool pad_buckets_for_high_nccl_busbw = false;
    std::optional<std::uint64_t> ddp_bucket_size;  ///< elements
    bool create_attention_mask_in_dataloader = true;
    bool masked_softmax_fusion = true;             ///< of Megatron's own attention
    bool transformer_engine_cross_entropy = true;  ///< cross_entropy_fusion_impl te; false: native
    bool recompute_block = false;                  ///< recompute_method; false: uniform
    std::optional<std::uint64_t> recompute_num_layers;
    bool use_precision_aware_optimizer = false;
    DType main_params_dtype = DType::fp32, main_grads_dtype = DType::fp32, exp_avg_dtype = DType::fp32,
          exp_avg_sq_dtype = DType::fp32;
    std::optional<bool>
        tensor_parallel_overlap;  ///< tp_comm_overlap; training.async_tensor_parallel is it too
    /// overlap_p2p_comm: messages of an interleaved schedule travel beside what computes; nullopt: true.
    std::optional<bool> overlap_messages{};
    bool fsdp_double_buffer = false;  ///< Megatron-FSDP: gathered and reduced buckets of two units, kept
    /// Megatron-FSDP, elements: gradients on their way to be reduced; half of it is gathered ahead.
    std::optional<std::uint64_t> suggested_communication_unit_size{};
    bool store_param_remainders = true;  ///< precision-aware: 2 bytes of the master beside bf16 parameters
    friend bool operator==(const MegatronOptions&, const MegatronOptions&) = default;
};

/// Reads training.megatron and engine_version. Throws Error{invalid_input} naming the key and the nearest
/// known one.
MegatronOptions read_megatron_options(const TrainingConfig& training);

}  // namespace zeroplan
