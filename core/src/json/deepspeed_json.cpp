#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engines/deepspeed_options.hpp"
#include "import/deepspeed_keys.hpp"
#include "json/object_reader.hpp"
#include "json/parse.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

/// "deepspeed 0.5-0.6, …" is 0.5; text without a number is the newest.
DeepSpeedVersion version_in(const std::string& text) {
    const std::size_t name = text.find("deepspeed ");
    if (name == std::string::npos) return {};
    const char* digits = text.c_str() + name + 10;
    if (std::isdigit(static_cast<unsigned char>(*digits)) == 0) return {};
    char* end = nullptr;
    DeepSpeedVersion version{static_cast<std::uint32_t>(std::strtoul(digits, &end, 10)), 0};
    if (*end == '.') version.minor = static_cast<std::uint32_t>(std::strtoul(end + 1, nullptr, 10));
    if (version.major > 0) return {};  // the newest that is known
    return std::max(version, DeepSpeedVersion{0, 3});
}

bool is_auto(const ObjectReader& object, std::string_view key) {
    const json* value = object.find(key);
    return value != nullptr && value->is_string() && *value == "auto";
}

void read_count(const ObjectReader& object, std::string_view key, std::uint64_t& count,
                std::uint64_t for_auto) {
    if (is_auto(object, key))
        count = for_auto;
    else if (const auto value = object.integer(key))
        count = *value;
}

void read_flag(const ObjectReader& object, std::string_view key, bool& flag) {
    if (is_auto(object, key)) return;
    if (const auto value = object.boolean(key)) flag = *value;
}

void read_offload(const ObjectReader& zero, std::string_view key, DeepSpeedOffload& offload) {
    const auto object = zero.object(key);
    if (!object) return;
    object->allow_only(deepspeed_section_keys(key));
    read_flag(*object, "pin_memory", offload.pin_memory);
    read_flag(*object, "pipeline_read", offload.pipeline_read);
    read_flag(*object, "pipeline_write", offload.pipeline_write);
    read_count(*object, "buffer_count", offload.buffer_count, offload.buffer_count);
    read_count(*object, "buffer_size", offload.buffer_size, offload.buffer_size);
    read_count(*object, "max_in_cpu", offload.max_in_cpu, offload.max_in_cpu);
}

void refuse_unknown_keys(const ObjectReader& zero) {
    std::vector<std::string_view> known;
    for (const ZeroKey& key : zero_keys()) {
        known.push_back(key.name);
        if (!key.other_name.empty()) known.push_back(key.other_name);
    }
    zero.allow_only(known);
    // What the plan doesn't read has to be of its type, as pydantic wants it.
    for (const ZeroKey& key : zero_keys())
        for (const std::string_view name : {key.name, key.other_name}) {
            if (name.empty() || is_auto(zero, name)) continue;
            if (key.value == ZeroValue::flag) zero.boolean(name);
            if (key.value == ZeroValue::count) zero.integer(name);
        }
}

void read_stage3(const ObjectReader& zero, std::uint64_t hidden, DeepSpeedOptions& options) {
    for (const std::string prefix : {"", "stage3_"}) {
        // Hugging Face's integration: 0.9 · hidden² and 10 · hidden (transformers/integrations/deepspeed.py).
        read_count(zero, prefix + "prefetch_bucket_size", options.prefetch_bucket_size,
                   hidden * hidden * 9 / 10);
        read_count(zero, prefix + "param_persistence_threshold", options.param_persistence_threshold,
                   10 * hidden);
        read_count(zero, prefix + "model_persistence_threshold", options.model_persistence_threshold,
                   options.model_persistence_threshold);
        read_count(zero, prefix + "max_live_parameters", options.max_live_parameters,
                   options.max_live_parameters);
        read_count(zero, prefix + "max_reuse_distance", options.max_reuse_distance,
                   options.max_reuse_distance);
        read_flag(zero, prefix + "gather_16bit_weights_on_model_save",
                  options.gather_16bit_weights_on_model_save);
        read_flag(zero, prefix + "allgather_sequential", options.allgather_sequential);
        read_flag(zero, prefix + "use_all_reduce_for_fetch_params", options.use_all_reduce_for_fetch_params);
    }
    std::uint64_t granularity = 0;
    for (const std::string prefix : {"", "stage3_"})
        read_count(zero, prefix + "module_granularity_threshold", granularity, 0);
    if (granularity > 0)
        options.no_effect.emplace_back(
            "stage3_module_granularity_threshold has no effect in this plan: every module gathers its own "
            "parameters");
    read_flag(zero, "stage3_gather_fp16_weights_on_model_save", options.gather_16bit_weights_on_model_save);
    if (options.allgather_sequential) options.prefetch_bucket_size = 1;
    read_count(zero, "sub_group_size", options.sub_group_size, options.sub_group_size);
    read_count(zero, "zero_hpz_partition_size", options.hpz_partition_size, 1);
    read_flag(zero, "zero_quantized_weights", options.quantized_weights);
    read_flag(zero, "zero_quantized_gradients", options.quantized_gradients);
    options.loco = zero.object("zeropp_loco_param").has_value();
    read_flag(zero, "zero_quantized_nontrainable_weights", options.quantized_nontrainable_weights);
    const json* mics = zero.find("mics_shard_size");
    if (mics != nullptr && !(mics->is_number_integer() && mics->get<std::int64_t>() < 0))
        options.mics_shard_size = zero.integer("mics_shard_size").value_or(0);
}

void read_zero(const ObjectReader& zero, std::uint64_t hidden, DeepSpeedOptions& options) {
    refuse_unknown_keys(zero);
    read_flag(zero, "contiguous_gradients", options.contiguous_gradients);
    read_flag(zero, "reduce_scatter", options.reduce_scatter);
    read_flag(zero, "round_robin_gradients", options.round_robin_gradients);
    read_flag(zero, "overlap_comm", options.overlap_comm);
    read_flag(zero, "use_multi_rank_bucket_allreduce", options.multi_rank_bucket_allreduce);
    read_count(zero, "reduce_bucket_size", options.reduce_bucket_size, hidden * hidden);
    read_count(zero, "allgather_bucket_size", options.allgather_bucket_size, options.allgather_bucket_size);
    read_stage3(zero, hidden, options);
    read_offload(zero, "offload_optimizer", options.offload_optimizer);
    read_offload(zero, "offload_param", options.offload_parameters);
}

void read_precision(const ObjectReader& section, DeepSpeedOptions& options) {
    read_flag(section, "check_grad_overflow", options.check_grad_overflow);
    read_flag(section, "immediate_grad_update", options.immediate_grad_update);
    read_flag(section, "bf16_master_weights_and_grads", options.sixteen_bit_master);
    read_flag(section, "fp16_master_weights_and_grads", options.sixteen_bit_master);
    read_flag(section, "bf16_optimizer_states", options.sixteen_bit_optimizer_states);
}

/// deepspeed.checkpointing is what Megatron-DeepSpeed calls; the copies themselves are offload_activations'.
void read_checkpointing(const ObjectReader& section, const TrainingConfig& training,
                        DeepSpeedOptions& options) {
    bool on_host = false;
    read_flag(section, "partition_activations", options.partition_activations);
    read_flag(section, "cpu_checkpointing", on_host);
    const bool offloads = training.offload_activations != OffloadTarget::none;
    if (on_host && !offloads)
        options.no_effect.emplace_back(
            "activation_checkpointing.cpu_checkpointing = true has no effect: \"offload_activations\": "
            "\"cpu\" "
            "plans it, for models that checkpoint by deepspeed.checkpointing");
    if (options.partition_activations && training.tensor_parallel == 1)
        options.no_effect.emplace_back(
            "activation_checkpointing.partition_activations = true has no effect with tensor_parallel 1");
    else if (options.partition_activations && training.recompute == Recompute::none)
        options.no_effect.emplace_back(
            "activation_checkpointing.partition_activations = true has no effect with recompute none: it "
            "partitions what checkpointed layers keep");
}

/// qgZ is a hop inside the nodes and one between them: on one node gradients are reduce-scattered as ever.
/// source: stage3.py, __avg_scatter_grads
void settle_quantised_gradients(const Scenario& scenario, DeepSpeedOptions& options) {
    const ClusterSpec& cluster = scenario.cluster;
    options.ranks_per_node = std::max<std::uint64_t>(1, std::min(cluster.gpus_per_node, cluster.gpus_used));
    if (options.quantized_gradients && cluster.gpus_used <= cluster.gpus_per_node) {
        options.quantized_gradients = false;
        options.no_effect.emplace_back("zero_quantized_gradients = true has no effect on one node");
    }
    if (options.loco && !options.quantized_gradients) {
        options.loco = false;
        options.no_effect.emplace_back("zeropp_loco_param has no effect without zero_quantized_gradients");
    }
}

}  // namespace

DeepSpeedRules deepspeed_rules(DeepSpeedVersion version) {
    using V = DeepSpeedVersion;
    return {.states_at_init = version < V{0, 9},
            .flattens_buckets = version >= V{0, 13},
            .gathers_lists = version < V{0, 9},
            .flattens_on_host = version < V{0, 13},
            .stage1_ignores_buckets = version >= V{0, 4} && version < V{0, 13},
            .coalesces_gathers = version >= V{0, 6},
            .keeps_stage3_gradients = version >= V{0, 6},
            .bucket_halves = version < V{0, 4} ? 9U : 2U};
}

DeepSpeedOptions read_deepspeed_options(const Scenario& scenario) {
    const TrainingConfig& training = scenario.training;
    DeepSpeedOptions options{.version = version_in(training.engine_version)};
    options.rules = deepspeed_rules(options.version);
    options.overlap_comm = training.zero_stage == 3 && training.pipeline_parallel == 1;
    options.hpz_partition_size = training.secondary_shard_group;
    if (!training.deepspeed_json.empty()) {
        const json object = parse_json(training.deepspeed_json, "");
        const ObjectReader deepspeed(object, {"", "/training/deepspeed"});
        if (const auto zero = deepspeed.object("zero_optimization"))
            read_zero(*zero, scenario.model.hidden_size, options);
        for (const char* section : {"bf16", "fp16"})
            if (const auto precision = deepspeed.object(section)) read_precision(*precision, options);
        read_flag(deepspeed, "zero_init", options.zero_init);
        if (const auto checkpointing = deepspeed.object("activation_checkpointing"))
            read_checkpointing(*checkpointing, training, options);
        if (const auto aio = deepspeed.object("aio"))
            read_count(*aio, "intra_op_parallelism", options.aio_threads, 1);
    }
    if (training.secondary_shard_group > 1 && options.hpz_partition_size != training.secondary_shard_group)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("secondary_shard_group is {}, but deepspeed.zero_optimization."
                                "zero_hpz_partition_size {}",
                                training.secondary_shard_group, options.hpz_partition_size),
                    "keep one of the two", {"", "/training/secondary_shard_group"});
    settle_quantised_gradients(scenario, options);
    if (training.pipeline_parallel > 1) options.overlap_comm = false;
    if (training.zero_stage == 1 && options.rules.stage1_ignores_buckets)
        options.contiguous_gradients = options.overlap_comm = options.round_robin_gradients = false;
    if (!options.multi_rank_bucket_allreduce) options.rules.flattens_buckets = false;
    return options;
}

}  // namespace zeroplan
