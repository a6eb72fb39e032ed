#include "import/deepspeed_keys.hpp"

#include <algorithm>
#include <array>

namespace zeroplan {
namespace {

constexpr std::uint8_t at_1_2 = 0b0110, at_3 = 0b1000, at_1_2_3 = 0b1110;
constexpr auto flag = ZeroValue::flag;
constexpr auto count = ZeroValue::count;
constexpr auto other = ZeroValue::other;

constexpr std::array keys{
    ZeroKey{"stage", "", other, at_1_2_3},
    ZeroKey{"contiguous_gradients", "", flag, at_1_2_3, true},
    ZeroKey{"reduce_scatter", "", flag, at_1_2_3, true},
    ZeroKey{"reduce_bucket_size", "", count, at_1_2_3, true},
    ZeroKey{"use_multi_rank_bucket_allreduce", "", flag, at_1_2, true},
    ZeroKey{"allgather_partitions", "", flag, at_1_2},
    ZeroKey{"allgather_bucket_size", "", count, at_1_2, true},
    ZeroKey{"overlap_comm", "", flag, at_1_2_3, true},
    ZeroKey{"load_from_fp32_weights", "", flag, at_1_2_3},
    ZeroKey{"elastic_checkpoint", "", flag, at_1_2_3},
    ZeroKey{"offload_param", "", other, at_3},
    ZeroKey{"offload_optimizer", "", other, at_1_2_3},
    ZeroKey{"zenflow", "", other, at_1_2_3},
    ZeroKey{"sub_group_size", "", count, at_3, true},
    ZeroKey{"cpu_offload", "", other, at_1_2_3},
    ZeroKey{"cpu_offload_param", "", other, at_3},
    ZeroKey{"cpu_offload_use_pin_memory", "", other, 0},
    ZeroKey{"stage3_prefetch_bucket_size", "prefetch_bucket_size", count, at_3, true},
    ZeroKey{"stage3_param_persistence_threshold", "param_persistence_threshold", count, at_3, true},
    ZeroKey{"stage3_model_persistence_threshold", "model_persistence_threshold", count, at_3, true},
    ZeroKey{"stage3_max_live_parameters", "max_live_parameters", count, at_3, true},
    ZeroKey{"stage3_max_reuse_distance", "max_reuse_distance", count, at_3, true},
    ZeroKey{"stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save", flag, at_3,
            true},
    ZeroKey{"stage3_gather_fp16_weights_on_model_save", "", other, at_3},
    ZeroKey{"stage3_module_granularity_threshold", "module_granularity_threshold", count, at_3},
    ZeroKey{"stage3_use_all_reduce_for_fetch_params", "use_all_reduce_for_fetch_params", flag, at_3, true},
    ZeroKey{"stage3_allgather_sequential", "allgather_sequential", flag, at_3, true},
    ZeroKey{"stage3_partition_stream_chunk_size", "partition_stream_chunk_size", count, at_3},
    ZeroKey{"ignore_unused_parameters", "", flag, at_1_2},
    ZeroKey{"legacy_stage1", "", flag, at_1_2},
    ZeroKey{"round_robin_gradients", "", flag, at_1_2, true},
    ZeroKey{"zero_hpz_partition_size", "", other, at_3},
    ZeroKey{"zero_quantized_weights", "", flag, at_3, true},
    ZeroKey{"zero_quantized_nontrainable_weights", "", flag, at_3, true},
    ZeroKey{"zero_quantized_gradients", "", flag, at_3, true},
    ZeroKey{"zeropp_loco_param", "", other, at_3},
    ZeroKey{"mics_shard_size", "", other, at_3},
    ZeroKey{"mics_hierarchical_params_gather", "", flag, at_3},
    ZeroKey{"memory_efficient_linear", "", flag, at_3},
    ZeroKey{"pipeline_loading_checkpoint", "", flag, at_3},
    ZeroKey{"override_module_apply", "", flag, at_3},
    ZeroKey{"log_trace_cache_warnings", "", flag, at_3},
    ZeroKey{"enable_sanity_checks", "", flag, at_1_2_3},
    ZeroKey{"save_muon_momentum_buffer_in_memory", "", flag, at_3},
    ZeroKey{"leaf_module", "", other, at_3},
};

constexpr std::string_view top[] = {"train_batch_size",
                                    "train_micro_batch_size_per_gpu",
                                    "gradient_accumulation_steps",
                                    "managed_gradient_accumulation",
                                    "optimizer",
                                    "scheduler",
                                    "fp16",
                                    "bf16",
                                    "bfloat16",
                                    "amp",
                                    "torch_autocast",
                                    "gradient_clipping",
                                    "prescale_gradients",
                                    "gradient_predivide_factor",
                                    "gradient_allreduce_op",
                                    "sparse_gradients",
                                    "sparse_attention",
                                    "zero_optimization",
                                    "zero_allow_untested_optimizer",
                                    "zero_force_ds_cpu_optimizer",
                                    "allgather_size",
                                    "communication_data_type",
                                    "seq_parallel_comm_data_type",
                                    "steps_per_print",
                                    "wall_clock_breakdown",
                                    "memory_breakdown",
                                    "dump_state",
                                    "disable_allgather",
                                    "activation_checkpointing",
                                    "aio",
                                    "flops_profiler",
                                    "monitor_config",
                                    "tensorboard",
                                    "wandb",
                                    "comet",
                                    "csv_monitor",
                                    "comms_logger",
                                    "autotuning",
                                    "elasticity",
                                    "compression_training",
                                    "data_efficiency",
                                    "curriculum_learning",
                                    "progressive_layer_drop",
                                    "eigenvalue",
                                    "quantize_training",
                                    "weight_quantization",
                                    "checkpoint",
                                    "nebula",
                                    "datastates_ckpt",
                                    "data_types",
                                    "dataloader_drop_last",
                                    "pipeline",
                                    "hybrid_engine",
                                    "compile",
                                    "timers",
                                    "tensor_parallel",
                                    "expert_parallel",
                                    "sequence_parallel_size",
                                    "use_data_before_expert_parallelism",
                                    "vocabulary_size",
                                    "graph_harvesting",
                                    "log_level",
                                    "msamp"};

constexpr std::string_view bf16[] = {"enabled", "immediate_grad_update", "check_grad_overflow",
                                     "bf16_master_weights_and_grads", "bf16_optimizer_states"};
constexpr std::string_view fp16[] = {"enabled",
                                     "auto_cast",
                                     "loss_scale",
                                     "initial_scale_power",
                                     "loss_scale_window",
                                     "hysteresis",
                                     "consecutive_hysteresis",
                                     "min_loss_scale",
                                     "fp16_master_weights_and_grads"};
constexpr std::string_view offload_param[] = {"device",      "nvme_path",  "buffer_count",
                                              "buffer_size", "max_in_cpu", "pin_memory"};
constexpr std::string_view offload_optimizer[] = {
    "device",         "nvme_path", "buffer_count", "pin_memory",    "pipeline_read",
    "pipeline_write", "fast_init", "ratio",        "super_offload", "cpuadam_cores_perc"};

}  // namespace

std::span<const ZeroKey> zero_keys() {
    return keys;
}

const ZeroKey* find_zero_key(std::string_view name) {
    const auto found = std::find_if(keys.begin(), keys.end(), [&](const ZeroKey& key) {
        return key.name == name || (!key.other_name.empty() && key.other_name == name);
    });
    return found == keys.end() ? nullptr : &*found;
}

std::span<const std::string_view> deepspeed_top_keys() {
    return top;
}

std::span<const std::string_view> deepspeed_section_keys(std::string_view section) {
    if (section == "bf16" || section == "bfloat16") return bf16;
    if (section == "fp16") return fp16;
    if (section == "offload_param") return offload_param;
    if (section == "offload_optimizer") return offload_optimizer;
    return {};
}

}  // namespace zeroplan
