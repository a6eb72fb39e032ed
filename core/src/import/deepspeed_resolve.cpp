#include <array>

#include "import/deepspeed_keys.hpp"
#include "import/deepspeed_zero.hpp"
#include "printable.hpp"

namespace zeroplan {
namespace {

/// Defaults of the keys that decide memory. source: deepspeed/runtime/zero/config.py, DeepSpeedZeroConfig
struct Default {
    std::string_view key;
    std::uint64_t value;
};
constexpr std::array defaults{Default{"reduce_bucket_size", 500'000'000},
                              Default{"allgather_bucket_size", 500'000'000},
                              Default{"sub_group_size", 1'000'000'000},
                              Default{"stage3_prefetch_bucket_size", 50'000'000},
                              Default{"stage3_param_persistence_threshold", 100'000},
                              Default{"stage3_max_live_parameters", 1'000'000'000},
                              Default{"stage3_max_reuse_distance", 1'000'000'000}};

std::string_view used_name(const DeepSpeedSection& zero, const ZeroKey& key) {
    return !zero.has(key.name) && !key.other_name.empty() ? key.other_name : key.name;
}

void resolve_count(const DeepSpeedSection& zero, const Default& entry, const ImportContext& context) {
    const std::string_view name = used_name(zero, *find_zero_key(entry.key));
    // Read silently: what there is to say about the way it is written was said before.
    Import silent = zero.import();
    const auto stated = zero.in(silent).count(name);
    if (stated)
        return figure(zero.import(), std::string(entry.key), static_cast<double>(*stated), "elements",
                      fmt::format("line {}", zero.line(name)));
    const bool automatic = zero.is_auto(name) && automatic_count(entry.key, 1).has_value();
    if (automatic && !context.hidden_size) return;
    figure(zero.import(), std::string(entry.key),
           static_cast<double>(automatic ? *automatic_count(entry.key, *context.hidden_size) : entry.value),
           "elements", automatic ? "\"auto\", from the hidden size" : "DeepSpeed's default");
}

/// The buffer that gradients are reduced from, in the 16-bit dtype.
void resolve_buffers(const DeepSpeedSection& zero, bool overlap) {
    const auto bucket = zero.import().figure("reduce_bucket_size");
    if (!bucket) return;
    const double buffers = overlap ? 2 : 1;
    figure(zero.import(), "reduce_buffer_bytes", 2 * *bucket * buffers, "B",
           fmt::format("{} of {} elements in 16 bit", overlap ? "two buffers" : "one buffer",
                       fixed(*bucket, 0)));
}

}  // namespace

void resolve_zero(const DeepSpeedSection& zero, std::uint32_t stage, const ImportContext& context) {
    if (stage == 0) return;
    for (const Default& entry : defaults)
        if ((find_zero_key(entry.key)->stages >> stage & 1U) != 0) resolve_count(zero, entry, context);
    const auto stated = zero.flag("overlap_comm");
    figure(zero.import(), "overlap_comm", stated.value_or(stage == 3) ? 1 : 0, "1",
           stated ? fmt::format("line {}", zero.line("overlap_comm"))
                  : fmt::format("DeepSpeed's default at stage {}", stage));
    // Stage 3 keeps one bucket for ever, stages 1 and 2 a second one for overlap.
    resolve_buffers(zero, stage != 3 && stated.value_or(false));
}

}  // namespace zeroplan
