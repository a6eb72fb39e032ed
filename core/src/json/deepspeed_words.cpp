#include "json/deepspeed_words.hpp"

#include <nlohmann/json.hpp>

#include "json/read_word.hpp"

namespace zeroplan {
namespace {

std::optional<DType> read_dtype(const ObjectReader& object, std::string_view key) {
    const auto text = object.string(key);
    if (!text) return std::nullopt;
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16})
        if (to_string(dtype) == *text) return dtype;
    fail_wrong_word(object, key, *text, {"fp32", "fp16", "bf16"});
}

bool is_auto(const ObjectReader& object, std::string_view key) {
    const nlohmann::json* value = object.find(key);
    return value != nullptr && value->is_string() && *value == "auto";
}

/// `value` of the object's `key`, unless `training` states its own `word` for it, which has to be the same.
template <typename Value>
void take(const ObjectReader& training, std::string_view word, Value& member, const ObjectReader& object,
          std::string_view key, Value value, std::string_view text) {
    if (training.has(word) && member != value)
        object.fail(key, fmt::format("\"{}\" says {}, but training's \"{}\" something else", key, text, word),
                    "keep one of the two");
    member = value;
}

struct Offload {
    const char* object;    ///< of zero_optimization
    const char* old_flag;  ///< true is the same with device cpu
    const char* word;      ///< of training
};

/// source: deepspeed/runtime/zero/config.py (cpu_offload, cpu_offload_param: deprecated, set the object).
void read_offload(const ObjectReader& training, const ObjectReader& zero, const Offload& offload,
                  OffloadTarget& member) {
    const auto object = zero.object(offload.object);
    if (const auto on = zero.boolean(offload.old_flag)) {
        if (object)
            zero.fail(offload.old_flag,
                      fmt::format("DeepSpeed refuses it together with \"{}\"", offload.object),
                      "keep the object");
        take(training, offload.word, member, zero, offload.old_flag,
             *on ? OffloadTarget::cpu : OffloadTarget::none, *on ? "cpu" : "none");
    }
    if (!object || is_auto(*object, "device")) return;
    if (const auto target = read_word<OffloadTarget>(*object, "device"))
        take(training, offload.word, member, *object, "device", *target, to_string(*target));
}

void read_offloads(TrainingInput& input, const ObjectReader& training, const ObjectReader& zero) {
    const std::uint32_t stage = input.zero_stage.value_or(input.own.zero_stage.value_or(0));
    TrainingConfig& config = input.config;
    if (stage >= 1)
        read_offload(training, zero, {"offload_optimizer", "cpu_offload", "offload_optimizer"},
                     config.offload_optimizer);
    if (stage == 3)
        read_offload(training, zero, {"offload_param", "cpu_offload_param", "offload_parameters"},
                     config.offload_parameters);
    if (const auto optimizer = zero.object("offload_optimizer"); optimizer && stage == 3)
        if (const auto share = optimizer->number("ratio", 0, 1))
            take(training, "offload_fraction", config.offload_fraction, *optimizer, "ratio", *share,
                 fmt::format("{}", *share));
}

void read_zero(TrainingInput& input, const ObjectReader& training, const ObjectReader& zero) {
    if (const auto stage = zero.integer("stage", 0, 3))
        input.own.zero_stage = static_cast<std::uint32_t>(*stage);
    input.own.zero_stage_key = "deepspeed.zero_optimization.stage";
    read_offloads(input, training, zero);
    if (is_auto(zero, "zero_hpz_partition_size")) return;
    if (const auto group = zero.integer("zero_hpz_partition_size", 1, 1ULL << 20))
        take(training, "secondary_shard_group", input.config.secondary_shard_group, zero,
             "zero_hpz_partition_size", *group, fmt::format("{}", *group));
}

}  // namespace

void read_deepspeed_words(TrainingInput& input, const ObjectReader& training, const ObjectReader& deepspeed) {
    if (const auto zero = deepspeed.object("zero_optimization")) read_zero(input, training, *zero);
    if (const auto types = deepspeed.object("data_types"))
        input.own.gradient_dtype = read_dtype(*types, "grad_accum_dtype");
    input.own.reduce_dtype = read_dtype(deepspeed, "communication_data_type");
}

}  // namespace zeroplan
