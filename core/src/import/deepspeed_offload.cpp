#include "import/deepspeed_offload.hpp"

#include <array>

#include "import/deepspeed_keys.hpp"
#include "zeroplan/words.hpp"

namespace zeroplan {
namespace {

struct Offload {
    const char* object;    ///< of zero_optimization
    const char* old_flag;  ///< "cpu_offload": true is the same with device cpu
    const char* pointer;   ///< of the scenario
};
constexpr Offload optimizer{"offload_optimizer", "cpu_offload", "/training/offload_optimizer"};
constexpr Offload parameters{"offload_param", "cpu_offload_param", "/training/offload_parameters"};

OffloadTarget read_device(const DeepSpeedSection& object) {
    if (object.is_auto("device")) return OffloadTarget::none;
    const auto word = object.word("device");
    if (!word) return OffloadTarget::none;
    if (const auto target = from_word<OffloadTarget>(*word)) return *target;
    object.fail("device", fmt::format("\"device\" cannot be \"{}\"", *word), "one of: none, cpu, nvme");
}

/// Buffers and pinning, which decide the host's memory.
void import_buffers(const DeepSpeedSection& object, const Offload& offload) {
    const std::string base = fmt::format("/training/deepspeed/zero_optimization/{}/", offload.object);
    for (const char* key : {"buffer_count", "buffer_size", "max_in_cpu"})
        if (const auto count = object.count(key)) object.state(base + key, std::to_string(*count), key);
    for (const char* key : {"pin_memory", "pipeline_read", "pipeline_write"})
        if (const auto flag = object.flag(key)) object.state(base + key, *flag ? "true" : "false", key);
    if (const auto ratio = object.number("ratio", 0, 1))
        object.state("/training/offload_fraction", fmt::format("{}", *ratio), "ratio");
}

void import_object(const DeepSpeedSection& object, const Offload& offload) {
    object.forbid_others(deepspeed_section_keys(offload.object));
    const OffloadTarget target = read_device(object);
    object.state_word(offload.pointer, to_string(target), "device");
    if (target == OffloadTarget::none) return;
    import_buffers(object, offload);
    if (target == OffloadTarget::nvme && !object.has("nvme_path"))
        object.note(Finding::rejected, "device", "\"nvme\" needs the folder to swap into",
                    R"(add "nvme_path": "/local_nvme")");
}

void import_old_flag(const DeepSpeedSection& zero, const Offload& offload) {
    const auto on = zero.flag(offload.old_flag);
    if (!on) return;
    zero.note(Finding::deprecated, offload.old_flag,
              fmt::format("stands for \"{}\": {{\"device\": \"{}\"}}", offload.object, *on ? "cpu" : "none"));
    if (zero.has(offload.object))
        zero.note(Finding::rejected, offload.old_flag,
                  fmt::format("DeepSpeed refuses it together with \"{}\"", offload.object),
                  "keep the object");
    else
        zero.state_word(offload.pointer, *on ? "cpu" : "none", offload.old_flag);
}

void note_old_pinning(const DeepSpeedSection& zero) {
    constexpr const char* key = "cpu_offload_use_pin_memory";
    if (zero.flag(key))
        zero.note(Finding::deprecated, key,
                  "has no effect: DeepSpeed maps it to nothing, and pins offloaded memory by default",
                  R"(put "pin_memory" into offload_optimizer or offload_param)");
}

}  // namespace

void import_offloads(const DeepSpeedSection& zero, std::uint32_t stage) {
    note_old_pinning(zero);
    if (stage == 0) return;
    if (const auto object = zero.section(optimizer.object)) import_object(*object, optimizer);
    import_old_flag(zero, optimizer);
    if (stage == 3) {
        if (const auto object = zero.section(parameters.object)) import_object(*object, parameters);
        import_old_flag(zero, parameters);
        return;
    }
    for (const char* key : {parameters.object, parameters.old_flag})
        if (zero.has(key))
            zero.note(
                Finding::warning, key,
                fmt::format("works with stage 3 only: at stage {} every rank keeps all 16-bit parameters on "
                            "its GPU",
                            stage),
                "use stage 3, or remove it");
}

}  // namespace zeroplan
