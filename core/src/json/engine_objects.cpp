#include "json/engine_objects.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "json/deepspeed_words.hpp"
#include "json/read_word.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// An object that belongs to other engines has no effect: that is a mistake, not a preference.
void check_owner(const ObjectReader& training, const char* key, EngineKind engine,
                 std::initializer_list<EngineKind> owners) {
    if (!training.has(key) || std::find(owners.begin(), owners.end(), engine) != owners.end()) return;
    std::vector<std::string_view> names;
    for (const EngineKind owner : owners) names.push_back(to_string(owner));
    training.fail(
        key, fmt::format("\"{}\" has no meaning for engine {}", key, to_string(engine)),
        fmt::format("it belongs to engine {}; remove it or change the engine", fmt::join(names, ", ")));
}

std::optional<std::string> read_text_of(const ObjectReader& object, std::string_view key,
                                        std::initializer_list<std::string_view> known) {
    auto text = object.string(key);
    if (text && std::find(known.begin(), known.end(), *text) == known.end())
        fail_wrong_word(object, key, *text, {known.begin(), known.end()});
    return text;
}

std::optional<std::int64_t> read_reshard(const ObjectReader& fsdp) {
    const json* value = fsdp.find("reshard_after_forward");
    if (value == nullptr) return std::nullopt;
    if (value->is_boolean()) return value->get<bool>() ? 1 : 0;
    // An integer is the number of ranks of the smaller group; 1 rank would be no sharding at all.
    return static_cast<std::int64_t>(
        read_integer(*value, fsdp.place("reshard_after_forward"), "reshard_after_forward", 2, 1ULL << 20));
}

/// These keys are FSDP2's; another engine knows one of them.
void take_only(const ObjectReader& fsdp, const char* engine, std::string_view known) {
    for (const auto& item : fsdp.value().items())
        if (item.key() != known)
            fsdp.fail(item.key(), fmt::format("\"{}\" has no meaning for engine {}", item.key(), engine),
                      fmt::format("of fsdp's keys it takes {} only; remove this one or choose engine fsdp2",
                                  known));
}

void read_fsdp(TrainingInput& input, const ObjectReader& fsdp) {
    fsdp.allow_only(
        {"reshard_after_forward", "wrap", "limit_all_gathers", "backward_prefetch", "gradient_sync"});
    if (input.config.engine == EngineKind::native) take_only(fsdp, "native", "gradient_sync");
    if (input.config.engine == EngineKind::megatron_fsdp)
        take_only(fsdp, "megatron_fsdp", "reshard_after_forward");
    FsdpOptions& options = input.config.fsdp;
    options.reshard_after_forward = read_reshard(fsdp);
    options.wrap = read_text_of(fsdp, "wrap", {"layer", "layer+embedding+output", "root"});
    options.limit_all_gathers = fsdp.boolean("limit_all_gathers");
    options.backward_prefetch = read_text_of(fsdp, "backward_prefetch", {"pre", "post", "none"});
    options.gradient_sync = read_word<GradientSync>(fsdp, "gradient_sync");
    if (options.reshard_after_forward) {
        input.own.zero_stage = *options.reshard_after_forward == 0 ? 2 : 3;
        input.own.zero_stage_key = "fsdp.reshard_after_forward";
    }
}

/// The strategy is the stage's number in this list.
void read_sharding_strategy(TrainingInput& input, const ObjectReader& megatron) {
    const auto word = megatron.string("data_parallel_sharding_strategy");
    if (!word || input.config.engine != EngineKind::megatron_fsdp) return;
    static constexpr std::array<std::string_view, 4> strategies{"no_shard", "optim", "optim_grads",
                                                                "optim_grads_params"};
    const auto found = std::find(strategies.begin(), strategies.end(), *word);
    if (found == strategies.end())
        megatron.fail_unknown_word("data_parallel_sharding_strategy", *word, strategies);
    input.own.zero_stage = static_cast<std::uint32_t>(found - strategies.begin());
    input.own.zero_stage_key = "megatron.data_parallel_sharding_strategy";
}

void read_adapter(TrainingInput& input, const ObjectReader& adapter) {
    adapter.allow_only({"kind", "rank", "targets", "base_dtype"});
    if (!read_text_of(adapter, "kind", {"lora", "qlora"}))
        adapter.fail("kind", "an adapter needs its \"kind\"", "one of: lora, qlora");
    if (!adapter.integer("rank", 1, 1ULL << 20))
        adapter.fail("rank", "an adapter needs its \"rank\"", "such as \"rank\": 16");
    const json* targets = adapter.find("targets");
    if (targets == nullptr)
        adapter.fail("targets", "an adapter needs its \"targets\"",
                     R"(such as "targets": ["q_proj", "v_proj"], or "all_linear")");
    if (targets->is_string())
        read_text_of(adapter, "targets", {"all_linear"});
    else
        adapter.strings("targets");
    read_text_of(adapter, "base_dtype", {"bf16", "fp16", "fp32", "nf4"});
    input.config.adapter_json = adapter.value().dump();
}

void read_fp8(TrainingInput& input, const ObjectReader& fp8) {
    fp8.allow_only({"recipe", "all_gather"});
    read_text_of(fp8, "recipe", {"tensorwise", "rowwise", "delayed", "mxfp8"});
    fp8.boolean("all_gather");
    input.config.fp8_json = fp8.value().dump();
}

void read_moe(TrainingInput& input, const ObjectReader& moe) {
    moe.allow_only({"capacity_factor", "load_imbalance"});
    moe.number("capacity_factor", 0, 1e6);
    moe.number("load_imbalance", 1, 1e6);
    input.config.moe_json = moe.value().dump();
}

/// source: c10/cuda/CUDAAllocatorConfig.cpp, parseMaxSplitSize: more than kLargeBuffer, 20 MiB.
constexpr std::uint64_t least_max_split = (20ULL << 20) + 1;

void read_allocator(TrainingInput& input, const ObjectReader& allocator) {
    allocator.allow_only({"expandable_segments", "max_split_size_bytes"});
    input.config.allocator = {allocator.boolean("expandable_segments").value_or(false),
                              allocator.integer("max_split_size_bytes", least_max_split, 1ULL << 50)};
}

ordered_json allocator_to_json(const CachingAllocatorOptions& options) {
    ordered_json out;
    if (options.expandable_segments) out["expandable_segments"] = true;
    if (options.max_split_size_bytes) out["max_split_size_bytes"] = *options.max_split_size_bytes;
    return out;
}

template <typename Read>
void read_object(TrainingInput& input, const ObjectReader& training, const char* key, Read read) {
    if (const auto object = training.object(key)) read(input, *object);
}

ordered_json fsdp_to_json(const FsdpOptions& options) {
    ordered_json out;
    if (options.reshard_after_forward) {
        if (*options.reshard_after_forward <= 1)
            out["reshard_after_forward"] = *options.reshard_after_forward == 1;
        else
            out["reshard_after_forward"] = *options.reshard_after_forward;
    }
    if (options.wrap) out["wrap"] = *options.wrap;
    if (options.limit_all_gathers) out["limit_all_gathers"] = *options.limit_all_gathers;
    if (options.backward_prefetch) out["backward_prefetch"] = *options.backward_prefetch;
    if (options.gradient_sync) out["gradient_sync"] = to_string(*options.gradient_sync);
    return out;
}

}  // namespace

void read_engine_objects(TrainingInput& input, const ObjectReader& training) {
    using enum EngineKind;
    const EngineKind engine = input.config.engine;
    check_owner(training, "fsdp", engine, {fsdp1, fsdp2, megatron_fsdp, native});
    check_owner(training, "deepspeed", engine, {deepspeed});
    check_owner(training, "megatron", engine, {megatron, megatron_fsdp});
    // The native engine has an arena of its own, and llm.c calls cudaMalloc once.
    check_owner(training, "allocator", engine,
                {single, ddp, ddp_zero_optimizer, deepspeed, fsdp1, fsdp2, megatron, megatron_fsdp});
    read_object(input, training, "allocator", read_allocator);
    read_object(input, training, "fsdp", read_fsdp);
    if (const auto deepspeed = training.object("deepspeed")) {
        input.config.deepspeed_json = deepspeed->value().dump();
        read_deepspeed_words(input, training, *deepspeed);
    }
    read_object(input, training, "adapter", read_adapter);
    read_object(input, training, "fp8", read_fp8);
    read_object(input, training, "moe", read_moe);
    if (const auto megatron_object = training.object("megatron")) {
        input.config.megatron_json = megatron_object->value().dump();
        read_sharding_strategy(input, *megatron_object);
    }
}

void write_engine_objects(ordered_json& training, const TrainingConfig& config) {
    if (const ordered_json fsdp = fsdp_to_json(config.fsdp); !fsdp.empty()) training["fsdp"] = fsdp;
    if (const ordered_json allocator = allocator_to_json(config.allocator); !allocator.empty())
        training["allocator"] = allocator;
    for (const auto& [key, text] : {std::pair{"deepspeed", &config.deepspeed_json},
                                    {"megatron", &config.megatron_json},
                                    {"adapter", &config.adapter_json},
                                    {"fp8", &config.fp8_json},
                                    {"moe", &config.moe_json}})
        if (!text->empty()) training[key] = ordered_json::parse(*text);
}

}  // namespace zeroplan
