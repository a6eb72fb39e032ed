#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// A released version, of which rules are told apart: major · 1000 + minor.
struct DeepSpeedVersion {
    std::uint32_t major = 0, minor = 17;
    friend auto operator<=>(const DeepSpeedVersion&, const DeepSpeedVersion&) = default;
};

/// What changed between DeepSpeed's releases, found in the sources of the releases named.
struct DeepSpeedRules {
    /// Optimizer states are made at init by a step on zero gradients (up to 0.9;
    /// initialize_optimizer_states).
    bool states_at_init = false;
    /// The pieces of a reduced bucket are flattened and all-reduced (from 0.12.6; allreduce_and_scatter).
    /// Before, each piece was reduced to its owner in place.
    bool flattens_buckets = true;
    /// Partitions are gathered into a list of tensors, for which NCCL's process group takes a flat buffer of
    /// its own (up to 0.9), in shards of allgather_bucket_size elements.
    bool gathers_lists = false;
    /// Parameters move to the host while they are flattened (up to 0.12; move_to_cpu).
    bool flattens_on_host = false;
    /// Stage 1 reduces gradients where autograd left them, whatever contiguous_gradients and overlap_comm say
    /// (0.4 to 0.12; engine.py, "meaningless in stage 1 and are ignored").
    bool stage1_ignores_buckets = false;
    /// Stage 3 gathers several parameters in one flat buffer and then copies them out (from 0.6;
    /// AllGatherCoalescedHandle).
    bool coalesces_gathers = true;
    /// Stage 3 allocates gradient shards and bucket once (from 0.6; grad_partitions_flat_buffer).
    bool keeps_stage3_gradients = true;
    /// The bucket holds reduce_bucket_size times this many halves: 9 up to 0.3 (int(reduce_bucket_size
    /// * 4.5)).
    std::uint64_t bucket_halves = 2;
    friend bool operator==(const DeepSpeedRules&, const DeepSpeedRules&) = default;
};
DeepSpeedRules deepspeed_rules(DeepSpeedVersion version);

/// offload_optimizer, offload_param.
struct DeepSpeedOffload {
    bool pin_memory = true;
    std::uint64_t buffer_count = 4;
    std::uint64_t buffer_size = 100'000'000;   ///< elements
    std::uint64_t max_in_cpu = 1'000'000'000;  ///< elements
    bool pipeline_read = false, pipeline_write = false;
    friend bool operator==(const DeepSpeedOffload&, const DeepSpeedOffload&) = default;
};

/// `training.deepspeed` with the defaults of DeepSpeed's own configuration classes; sizes in elements.
/// source: deepspeed/runtime/zero/config.py, offload_config.py, runtime/config.py, precision_config.py
struct DeepSpeedOptions {
    DeepSpeedVersion version;
    DeepSpeedRules rules;
    bool contiguous_gradients = true, reduce_scatter = true, round_robin_gradients = false;
    bool overlap_comm = false;  ///< by default true at stage 3 alone; never in a pipeline
    bool multi_rank_bucket_allreduce = true;
    std::uint64_t reduce_bucket_size = 500'000'000, allgather_bucket_size = 500'000'000;
    std::uint64_t sub_group_size = 1'000'000'000, prefetch_bucket_size = 50'000'000;
    std::uint64_t param_persistence_threshold = 100'000;
    std::uint64_t model_persistence_threshold = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max_live_parameters = 1'000'000'000, max_reuse_distance = 1'000'000'000;
    bool allgather_sequential = false, use_all_reduce_for_fetch_params = false;
    bool gather_16bit_weights_on_model_save = false;
    bool zero_init = true;  ///< stage 3: parameters are partitioned as they are made, not all at once later
    std::uint64_t hpz_partition_size = 1;
    bool quantized_weights = false, quantized_gradients = false, quantized_nontrainable_weights = false;
    std::uint64_t mics_shard_size = 0;  ///< 0: no MiCS
    bool check_grad_overflow = true, immediate_grad_update = false;
    bool sixteen_bit_master = false;            ///< fp16_ or bf16_master_weights_and_grads(radients)
    bool sixteen_bit_optimizer_states = false;  ///< bf16_optimizer_states
    DeepSpeedOffload offload_optimizer{}, offload_parameters{.buffer_count = 5};
    std::uint64_t aio_threads = 1;       ///< aio.intra_op_parallelism
    bool partition_activations = false;  ///< activation_checkpointing.partition_activations
    std::uint64_t ranks_per_node = 1;
    bool loco = false;                     ///< zeropp_loco_param: quantised gradients with error feedback
    std::vector<std::string> no_effect{};  ///< keys that change nothing in this plan, and why

    /// Elements of one IPG bucket's buffer at stages 1 and 2.
    std::uint64_t bucket_elements() const { return reduce_bucket_size * rules.bucket_halves / 2; }
    friend bool operator==(const DeepSpeedOptions&, const DeepSpeedOptions&) = default;
};

/// Reads training.deepspeed and training.engine_version. "auto" becomes what Hugging Face's integration makes
/// of it from the hidden size. Throws Error{invalid_input} naming the key and the nearest known one.
DeepSpeedOptions read_deepspeed_options(const Scenario& scenario);

/// Which of DeepSpeed's optimizer wrappers takes a scenario (DeepSpeedEngine._configure_optimizer).
enum class DeepSpeedWrapper : std::uint8_t {
    plain,        ///< stage 0, fp32: the optimizer itself
    fused,        ///< stage 0, 16 bit: FP16_Optimizer
    bf16,         ///< BF16_Optimizer
    partitioned,  ///< stages 1 and 2: DeepSpeedZeroOptimizer
    stage3        ///< DeepSpeedZeroOptimizer_Stage3
};
DeepSpeedWrapper deepspeed_wrapper(const TrainingConfig& training);

}  // namespace zeroplan
