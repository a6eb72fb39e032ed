#include "import/deepspeed_zero.hpp"

#include <algorithm>

#include "import/deepspeed_keys.hpp"
#include "import/deepspeed_offload.hpp"
#include "json/object_reader.hpp"

namespace zeroplan {
namespace {

constexpr const char* zero_object = "/training/deepspeed/zero_optimization/";

/// Below this a collective's time is latency, not bandwidth: one of 1 MiB reaches a tenth of the rate of one
/// of 1 GiB on NVSwitch (nccl-tests). Assumption: sizes in between are not warned of.
constexpr std::uint64_t latency_bound_bytes = 1ULL << 20;

std::vector<std::string_view> all_names() {
    std::vector<std::string_view> names;
    for (const ZeroKey& key : zero_keys()) {
        names.push_back(key.name);
        if (!key.other_name.empty()) names.push_back(key.other_name);
    }
    return names;
}

/// The name that the file uses for `key`; "" if it has neither.
std::string_view used_name(const DeepSpeedSection& zero, const ZeroKey& key) {
    if (zero.has(key.name)) return key.name;
    return !key.other_name.empty() && zero.has(key.other_name) ? key.other_name : std::string_view{};
}

std::uint32_t read_stage(const DeepSpeedSection& zero) {
    const std::uint64_t stage = zero.count("stage").value_or(0);
    if (stage > 3) zero.fail("stage", fmt::format("\"stage\" must be 0, 1, 2 or 3, but is {}", stage));
    return static_cast<std::uint32_t>(stage);
}

std::string effective_stages(const ZeroKey& key) {
    if (key.stages == 0b1000) return "stage 3 only";
    if (key.stages == 0b0110) return "stages 1 and 2 only";
    return "stages 1 to 3";
}

void note_auto(const DeepSpeedSection& zero, std::string_view name, const ZeroKey& key,
               const ImportContext& context) {
    if (!automatic_count(key.name, 1)) {
        zero.note(Finding::resolved, name, "\"auto\": DeepSpeed drops it and takes its default");
        return;
    }
    zero.state_word(zero_object + std::string(key.name), "auto", name);
    if (context.hidden_size)
        zero.note(Finding::resolved, name,
                  fmt::format("\"auto\" becomes {} for hidden size {} (Hugging Face's integration)",
                              *automatic_count(key.name, *context.hidden_size), *context.hidden_size));
    else
        zero.ask("/model", name, "\"auto\" follows from the model's hidden size",
                 "name the model with --model");
}

/// States the value; one without effect has to be well written all the same.
void import_value(const DeepSpeedSection& zero, std::string_view name, const ZeroKey& key, bool effective,
                  const ImportContext& context) {
    if (zero.is_auto(name) && effective) return note_auto(zero, name, key, context);
    const bool is_flag = key.value == ZeroValue::flag;
    const auto flag = is_flag ? zero.flag(name) : std::nullopt;
    const auto count = is_flag ? std::nullopt : zero.count(name);
    if (!key.planned || !effective) return;
    if (flag) zero.state(zero_object + std::string(key.name), *flag ? "true" : "false", name);
    if (count)
        zero.state(zero_object + std::string(key.name),
                   std::to_string(std::min(*count, ObjectReader::largest_integer)), name);
}

void warn_of_small_bucket(const DeepSpeedSection& zero) {
    const auto elements = zero.count("reduce_bucket_size");
    if (!elements || *elements == 0 || 2 * *elements >= latency_bound_bytes) return;
    zero.note(
        Finding::warning, "reduce_bucket_size",
        fmt::format("a bucket of {} elements makes {} reductions of every 10^9 parameters, each bound by "
                    "latency: a step gets much slower to save at most {:.2f} GB of the default buffer",
                    *elements, 1'000'000'000 / *elements, 2 * (5e8 - static_cast<double>(*elements)) / 1e9),
        "5e7 elements take 0.1 GB in 16 bit");
}

void import_groups(const DeepSpeedSection& zero, std::uint32_t stage) {
    if (stage != 3) return;
    if (const auto hpz = zero.count("zero_hpz_partition_size"); hpz && *hpz > 1) {
        zero.state("/training/secondary_shard_group", std::to_string(*hpz), "zero_hpz_partition_size");
        zero.note(
            Finding::resolved, "zero_hpz_partition_size",
            fmt::format("every rank keeps a second 16-bit shard of 1/{} of the parameters; it has to divide "
                        "the number of ranks",
                        *hpz));
    }
    const nlohmann::json* mics = zero.find("mics_shard_size");
    if (mics == nullptr || (mics->is_number() && mics->get<double>() <= 0)) return;
    if (const auto ranks = zero.count("mics_shard_size", 1)) {
        zero.state(std::string(zero_object) + "mics_shard_size", std::to_string(*ranks), "mics_shard_size");
        zero.state("/training/shard_group", std::to_string(*ranks), "mics_shard_size");
    }
}

void import_renamed(const DeepSpeedSection& zero, std::uint32_t stage) {
    constexpr std::string_view old_name = "stage3_gather_fp16_weights_on_model_save";
    constexpr std::string_view new_name = "stage3_gather_16bit_weights_on_model_save";
    const auto gather = zero.flag(old_name);
    if (!gather) return;
    zero.note(Finding::deprecated, old_name, fmt::format("renamed \"{}\"", new_name));
    if (zero.has(new_name))
        zero.note(Finding::rejected, old_name,
                  fmt::format("DeepSpeed refuses it together with \"{}\"", new_name), "keep the new name");
    else if (stage == 3)
        zero.state(zero_object + std::string(new_name), *gather ? "true" : "false", old_name);
}

}  // namespace

std::optional<std::uint64_t> automatic_count(std::string_view key, std::uint64_t hidden) {
    if (key == "reduce_bucket_size") return hidden * hidden;
    // 0.9 · hidden², which has to be made whole: DeepSpeed refuses fractions.
    if (key == "stage3_prefetch_bucket_size") return hidden * hidden * 9 / 10;
    if (key == "stage3_param_persistence_threshold") return 10 * hidden;
    return std::nullopt;
}

std::uint32_t import_zero(const DeepSpeedSection& zero, const ImportContext& context) {
    const std::vector<std::string_view> names = all_names();
    zero.forbid_others(names);
    const std::uint32_t stage = read_stage(zero);
    zero.state("/training/zero_stage", std::to_string(stage), "stage");
    for (const ZeroKey& key : zero_keys()) {
        const std::string_view name = used_name(zero, key);
        if (name.empty() || key.name == "stage" || key.stages == 0) continue;
        const bool effective = (key.stages >> stage & 1U) != 0;
        if (!effective)
            zero.note(Finding::ignored, name,
                      fmt::format("has no effect at stage {} ({})", stage, effective_stages(key)));
        if (key.value != ZeroValue::other) import_value(zero, name, key, effective, context);
    }
    import_renamed(zero, stage);
    import_groups(zero, stage);
    import_offloads(zero, stage);
    if (stage > 0) warn_of_small_bucket(zero);
    return stage;
}

}  // namespace zeroplan
