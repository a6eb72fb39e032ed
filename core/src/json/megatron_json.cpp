#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engines/megatron_context.hpp"
#include "engines/megatron_options.hpp"
#include "json/object_reader.hpp"
#include "json/parse.hpp"

namespace zeroplan {
namespace {

void read_flag(const ObjectReader& object, std::string_view key, bool& flag) {
    if (const auto value = object.boolean(key)) flag = *value;
}

/// True if the word at `key` is `chosen`, false if it is `other`; anything else is refused.
void read_choice(const ObjectReader& object, std::string_view key, std::string_view chosen,
                 std::string_view other, bool& flag) {
    const auto word = object.string(key);
    if (!word) return;
    if (*word != chosen && *word != other) {
        const std::string_view known[] = {chosen, other};
        object.fail_unknown_word(key, *word, known);
    }
    flag = *word == chosen;
}

void read_dtype(const ObjectReader& object, std::string_view key, DType& dtype) {
    const auto word = object.string(key);
    if (!word) return;
    const auto found = dtype_from_string(*word);
    if (!found) {
        const std::string_view known[] = {"fp32", "bf16", "fp16", "fp8"};
        object.fail_unknown_word(key, *word, known);
    }
    dtype = *found;
}

/// Megatron's flag and the field that it sets (DistributedDataParallelConfig.bucket_size), elements.
std::optional<std::uint64_t> read_bucket_size(const ObjectReader& object) {
    const auto flag = object.integer("ddp_bucket_size", 1), field = object.integer("bucket_size", 1);
    if (flag && field && *flag != *field)
        object.fail("bucket_size", fmt::format("bucket_size is {}, but ddp_bucket_size {}", *field, *flag),
                    "they are the same: keep one of the two");
    return field ? field : flag;
}

MegatronGeneration generation_of(const std::string& engine_version) {
    for (const char* year : {"2019", "2020", "2021"})
        if (engine_version.starts_with(std::string("megatron-lm ") + year))
            return MegatronGeneration::lm_2021;
    return MegatronGeneration::core;
}

/// Options of Megatron-FSDP alone; the sharding strategy is training's zero_stage.
constexpr std::array<std::string_view, 6> fsdp_keys{
    "data_parallel_sharding_strategy",   "fsdp_double_buffer",         "nccl_ub",
    "suggested_communication_unit_size", "outer_dp_sharding_strategy", "fsdp_manual_registration"};

/// Buffers that NCCL has registered are double buffers (DistributedDataParallelConfig.nccl_ub).
void read_fsdp_options(const ObjectReader& object, MegatronOptions& options) {
    read_flag(object, "fsdp_double_buffer", options.fsdp_double_buffer);
    if (object.boolean("nccl_ub").value_or(false)) options.fsdp_double_buffer = true;
    object.boolean("fsdp_manual_registration");
    options.suggested_communication_unit_size = object.integer("suggested_communication_unit_size", 1);
    const auto outer = object.string("outer_dp_sharding_strategy");
    if (outer && *outer != "no_shard") {
        const std::string_view known[] = {"no_shard"};
        object.fail_unknown_word("outer_dp_sharding_strategy", *outer, known);
    }
}

/// source: megatron/training/arguments.py: --optimizer-cpu-offload needs --use-precision-aware-optimizer,
/// which is planned where it is left out.
void read_precision_aware(const ObjectReader& object, const TrainingConfig& training,
                          MegatronOptions& options) {
    read_flag(object, "use_precision_aware_optimizer", options.use_precision_aware_optimizer);
    if (training.offload_optimizer == OffloadTarget::none ||
        object.boolean("use_precision_aware_optimizer").value_or(true))
        return;
    throw Error(
        ErrorCode::invalid_input,
        fmt::format("use_precision_aware_optimizer is false, but offload_optimizer is '{}': Megatron's "
                    "--optimizer-cpu-offload needs it",
                    to_string(training.offload_optimizer)),
        "set it to true or leave it out, or set offload_optimizer to 'none'",
        {"", "/training/megatron/use_precision_aware_optimizer"});
}

}  // namespace

MegatronOptions read_megatron_options(const TrainingConfig& training) {
    MegatronOptions options{.generation = generation_of(training.engine_version)};
    if (options.generation == MegatronGeneration::lm_2021)
        options.transformer_engine = options.gradient_accumulation_fusion = false;
    if (training.kernels == Kernels::eager) options.transformer_engine = false;
    if (training.megatron_json.empty()) return options;

    const nlohmann::json json = parse_json(training.megatron_json, "");
    const ObjectReader object(json, {"", "/training/megatron"});
    std::vector<std::string_view> keys{"transformer_impl",
                                       "gradient_accumulation_fusion",
                                       "overlap_grad_reduce",
                                       "overlap_param_gather",
                                       "deterministic_mode",
                                       "num_distributed_optimizer_instances",
                                       "pad_buckets_for_high_nccl_busbw",
                                       "bucket_size",
                                       "ddp_bucket_size",
                                       "create_attention_mask_in_dataloader",
                                       "masked_softmax_fusion",
                                       "cross_entropy_fusion_impl",
                                       "recompute_method",
                                       "recompute_num_layers",
                                       "use_precision_aware_optimizer",
                                       "main_params_dtype",
                                       "main_grads_dtype",
                                       "exp_avg_dtype",
                                       "exp_avg_sq_dtype",
                                       "store_param_remainders",
                                       "tp_comm_overlap",
                                       "overlap_p2p_comm"};
    if (training.engine == EngineKind::megatron_fsdp)
        keys.insert(keys.end(), fsdp_keys.begin(), fsdp_keys.end());
    object.allow_only(keys);
    read_fsdp_options(object, options);
    read_choice(object, "transformer_impl", "transformer_engine", "local", options.transformer_engine);
    read_flag(object, "gradient_accumulation_fusion", options.gradient_accumulation_fusion);
    read_flag(object, "overlap_grad_reduce", options.overlap_grad_reduce);
    read_flag(object, "overlap_param_gather", options.overlap_param_gather);
    read_flag(object, "deterministic_mode", options.deterministic_mode);
    read_flag(object, "pad_buckets_for_high_nccl_busbw", options.pad_buckets_for_high_nccl_busbw);
    read_flag(object, "create_attention_mask_in_dataloader", options.create_attention_mask_in_dataloader);
    read_flag(object, "masked_softmax_fusion", options.masked_softmax_fusion);
    read_precision_aware(object, training, options);
    read_flag(object, "store_param_remainders", options.store_param_remainders);
    read_choice(object, "cross_entropy_fusion_impl", "te", "native",
                options.transformer_engine_cross_entropy);
    read_choice(object, "recompute_method", "block", "uniform", options.recompute_block);
    options.num_distributed_optimizer_instances =
        object.integer("num_distributed_optimizer_instances", 1).value_or(1);
    options.ddp_bucket_size = read_bucket_size(object);
    options.recompute_num_layers = object.integer("recompute_num_layers", 1);
    read_dtype(object, "main_params_dtype", options.main_params_dtype);
    read_dtype(object, "main_grads_dtype", options.main_grads_dtype);
    read_dtype(object, "exp_avg_dtype", options.exp_avg_dtype);
    read_dtype(object, "exp_avg_sq_dtype", options.exp_avg_sq_dtype);
    options.tensor_parallel_overlap = object.boolean("tp_comm_overlap");
    options.overlap_messages = object.boolean("overlap_p2p_comm");
    return options;
}

MoeOptions read_moe_options(const TrainingConfig& training) {
    if (training.moe_json.empty()) return {};
    const nlohmann::json json = parse_json(training.moe_json, "");
    const ObjectReader object(json, {"", "/training/moe"});
    return {object.number("capacity_factor"), object.number("load_imbalance", 1).value_or(1)};
}

}  // namespace zeroplan
