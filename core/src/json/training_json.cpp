#include "json/training_json.hpp"

#include <array>

#include <nlohmann/json.hpp>

#include "json/engine_objects.hpp"
#include "json/read_word.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// Beyond these a number is a typing mistake; products of several stay far from 2^64.
constexpr std::uint64_t largest_degree = 1ULL << 20, largest_count = 1ULL << 30;

constexpr std::string_view keys[] = {"engine",
                                     "zero_stage",
                                     "data_parallel",
                                     "shard_group",
                                     "secondary_shard_group",
                                     "tensor_parallel",
                                     "pipeline_parallel",
                                     "virtual_pipeline",
                                     "context_parallel",
                                     "expert_parallel",
                                     "expert_tensor_parallel",
                                     "sequence_parallel",
                                     "pipeline_schedule",
                                     "micro_batch_size",
                                     "gradient_accumulation_steps",
                                     "sequence_length",
                                     "compute_dtype",
                                     "parameter_dtype",
                                     "master_dtype",
                                     "gradient_dtype",
                                     "reduce_dtype",
                                     "optimizer",
                                     "optimizer_state_dtype",
                                     "optimizer_implementation",
                                     "recompute",
                                     "recompute_every",
                                     "recompute_modules",
                                     "attention",
                                     "loss",
                                     "kernels",
                                     "offload_optimizer",
                                     "offload_parameters",
                                     "offload_activations",
                                     "offload_gradients",
                                     "fp8",
                                     "async_tensor_parallel",
                                     "pipeline_layout",
                                     "offload_fraction",
                                     "adapter",
                                     "freeze",
                                     "deepspeed",
                                     "fsdp",
                                     "megatron",
                                     "engine_version",
                                     "moe",
                                     "allocator"};

void read_degree(std::uint64_t& value, const ObjectReader& object, std::string_view key,
                 std::uint64_t most = largest_degree) {
    value = object.integer(key, 1, most).value_or(value);
}

std::optional<std::uint32_t> read_stage(const ObjectReader& object) {
    const auto stage = object.integer("zero_stage", 0, 3);
    if (!stage) return std::nullopt;
    return static_cast<std::uint32_t>(*stage);
}

/// The word at `key`, which has to be one of `allowed`.
std::optional<DType> read_dtype(const ObjectReader& object, std::string_view key,
                                std::initializer_list<DType> allowed) {
    const auto text = object.string(key);
    if (!text) return std::nullopt;
    std::vector<std::string_view> known;
    for (const DType dtype : allowed) {
        if (to_string(dtype) == *text) return dtype;
        known.push_back(to_string(dtype));
    }
    fail_wrong_word(object, key, *text, known);
}

std::optional<StatedMaster> read_master_dtype(const ObjectReader& object) {
    const auto text = object.string("master_dtype");
    if (!text) return std::nullopt;
    if (*text == "none") return StatedMaster::none;
    if (*text == "fp32") return StatedMaster::fp32;
    fail_wrong_word(object, "master_dtype", *text, {"fp32", "none"});
}

void read_degrees(TrainingInput& input, const ObjectReader& object) {
    TrainingConfig& config = input.config;
    input.data_parallel = object.integer("data_parallel", 1, largest_degree);
    input.shard_group = object.integer("shard_group", 1, largest_degree);
    read_degree(config.secondary_shard_group, object, "secondary_shard_group");
    read_degree(config.tensor_parallel, object, "tensor_parallel");
    read_degree(config.pipeline_parallel, object, "pipeline_parallel");
    read_degree(config.virtual_pipeline, object, "virtual_pipeline");
    read_degree(config.context_parallel, object, "context_parallel");
    read_degree(config.expert_parallel, object, "expert_parallel");
    input.expert_tensor_parallel = object.integer("expert_tensor_parallel", 1, largest_degree);
    config.sequence_parallel = object.boolean("sequence_parallel").value_or(false);
    config.async_tensor_parallel = object.boolean("async_tensor_parallel").value_or(false);
    input.pipeline_schedule = read_word<PipelineSchedule>(object, "pipeline_schedule");
    config.pipeline_layout =
        object.integers("pipeline_layout", 0, largest_degree).value_or(config.pipeline_layout);
}

void read_dtypes(TrainingInput& input, const ObjectReader& object) {
    using enum DType;
    TrainingConfig& config = input.config;
    config.compute_dtype = read_dtype(object, "compute_dtype", {fp32, tf32, fp16, bf16, fp8}).value_or(bf16);
    input.parameter_dtype = read_dtype(object, "parameter_dtype", {fp32, fp16, bf16, fp8});
    input.master_dtype = read_master_dtype(object);
    input.gradient_dtype = read_dtype(object, "gradient_dtype", {fp32, fp16, bf16});
    input.reduce_dtype = read_dtype(object, "reduce_dtype", {fp32, fp16, bf16});
    config.optimizer_state_dtype =
        read_dtype(object, "optimizer_state_dtype", {fp32, fp16, bf16, fp8, uint8}).value_or(fp32);
}

void read_step(TrainingInput& input, const ObjectReader& object) {
    TrainingConfig& config = input.config;
    read_degree(config.micro_batch_size, object, "micro_batch_size", largest_count);
    read_degree(config.gradient_accumulation_steps, object, "gradient_accumulation_steps", largest_count);
    input.sequence_length = object.integer("sequence_length", 1, largest_count);
    read_word_into(config.optimizer, object, "optimizer");
    read_word_into(config.optimizer_implementation, object, "optimizer_implementation");
    read_word_into(config.recompute, object, "recompute");
    read_degree(config.recompute_every, object, "recompute_every");
    read_word_into(config.attention, object, "attention");
    read_word_into(config.loss, object, "loss");
    input.kernels = read_word<Kernels>(object, "kernels");
    config.freeze = object.strings("freeze").value_or(config.freeze);
    config.engine_version = object.string("engine_version").value_or("");
}

void read_recompute_modules(TrainingConfig& config, const ObjectReader& object) {
    constexpr std::array<std::string_view, 6> known{
        "core_attention", "mlp", "norm", "moe", "moe_activation", "mla_up_projection"};
    config.recompute_modules = object.strings("recompute_modules").value_or(config.recompute_modules);
    for (const std::string& module : config.recompute_modules)
        if (std::find(known.begin(), known.end(), module) == known.end())
            fail_wrong_word(object, "recompute_modules", module, {known.begin(), known.end()});
}

OffloadTarget read_offload(const ObjectReader& object, std::string_view key, bool nvme) {
    const auto target = read_word<OffloadTarget>(object, key).value_or(OffloadTarget::none);
    if (target == OffloadTarget::nvme && !nvme) fail_wrong_word(object, key, "nvme", {"none", "cpu"});
    return target;
}

void read_offloads(TrainingConfig& config, const ObjectReader& object) {
    config.offload_optimizer = read_offload(object, "offload_optimizer", true);
    config.offload_parameters = read_offload(object, "offload_parameters", true);
    config.offload_activations = read_offload(object, "offload_activations", false);
    config.offload_gradients = read_offload(object, "offload_gradients", false);
    config.offload_fraction = object.number("offload_fraction", 0, 1).value_or(1);
}

}  // namespace

std::span<const std::string_view> training_keys() {
    return keys;
}

TrainingInput read_training(const json& training, ErrorPlace place) {
    const ObjectReader object(training, place);
    object.allow_only(keys);
    TrainingInput input;
    input.place = std::move(place);
    read_word_into(input.config.engine, object, "engine");
    input.zero_stage = read_stage(object);
    read_degrees(input, object);
    read_dtypes(input, object);
    read_step(input, object);
    read_recompute_modules(input.config, object);
    read_offloads(input.config, object);
    read_engine_objects(input, object);
    return input;
}

ordered_json training_to_json(const TrainingConfig& t) {
    ordered_json out;
    out["engine"] = to_string(t.engine);
    if (!t.engine_version.empty()) out["engine_version"] = t.engine_version;
    out["zero_stage"] = t.zero_stage;
    out["data_parallel"] = t.data_parallel;
    out["shard_group"] = t.shard_group;
    out["secondary_shard_group"] = t.secondary_shard_group;
    out["tensor_parallel"] = t.tensor_parallel;
    out["pipeline_parallel"] = t.pipeline_parallel;
    out["virtual_pipeline"] = t.virtual_pipeline;
    out["context_parallel"] = t.context_parallel;
    out["expert_parallel"] = t.expert_parallel;
    out["expert_tensor_parallel"] = t.expert_tensor_parallel;
    out["sequence_parallel"] = t.sequence_parallel;
    out["async_tensor_parallel"] = t.async_tensor_parallel;
    out["pipeline_schedule"] = to_string(t.pipeline_schedule);
    if (!t.pipeline_layout.empty()) out["pipeline_layout"] = t.pipeline_layout;
    out["micro_batch_size"] = t.micro_batch_size;
    out["gradient_accumulation_steps"] = t.gradient_accumulation_steps;
    out["sequence_length"] = t.sequence_length;
    out["compute_dtype"] = to_string(t.compute_dtype);
    out["parameter_dtype"] = to_string(t.parameter_dtype);
    out["master_dtype"] = t.master_dtype ? to_string(*t.master_dtype) : "none";
    out["gradient_dtype"] = to_string(t.gradient_dtype);
    out["reduce_dtype"] = to_string(t.reduce_dtype);
    out["optimizer"] = to_string(t.optimizer);
    out["optimizer_state_dtype"] = to_string(t.optimizer_state_dtype);
    out["optimizer_implementation"] = to_string(t.optimizer_implementation);
    out["recompute"] = to_string(t.recompute);
    out["recompute_every"] = t.recompute_every;
    out["recompute_modules"] = t.recompute_modules;
    out["attention"] = to_string(t.attention);
    out["loss"] = to_string(t.loss);
    out["kernels"] = to_string(t.kernels);
    out["offload_optimizer"] = to_string(t.offload_optimizer);
    out["offload_parameters"] = to_string(t.offload_parameters);
    out["offload_activations"] = to_string(t.offload_activations);
    out["offload_gradients"] = to_string(t.offload_gradients);
    out["offload_fraction"] = t.offload_fraction;
    out["freeze"] = t.freeze;
    write_engine_objects(out, t);
    return out;
}

}  // namespace zeroplan
