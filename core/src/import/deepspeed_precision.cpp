#include "import/deepspeed_precision.hpp"

#include <array>

#include "import/deepspeed_keys.hpp"

namespace zeroplan {
namespace {

/// Whether a precision section is enabled; "auto" leaves it to Hugging Face's Trainer.
enum class Switch { off, on, automatic };

Switch read_switch(const std::optional<DeepSpeedSection>& section) {
    if (!section) return Switch::off;
    if (section->is_auto("enabled")) return Switch::automatic;
    return section->flag("enabled").value_or(false) ? Switch::on : Switch::off;
}

/// "bfloat16" is the old name of the section.
std::optional<DeepSpeedSection> bf16_section(const DeepSpeedSection& config) {
    const char* key = config.has("bf16") ? "bf16" : "bfloat16";
    return config.section(key);
}

void import_options(const DeepSpeedSection& section, const char* name) {
    section.forbid_others(deepspeed_section_keys(name));
    for (const char* key : {"check_grad_overflow", "immediate_grad_update", "bf16_master_weights_and_grads",
                            "bf16_optimizer_states", "fp16_master_weights_and_grads"})
        if (const auto flag = section.flag(key))
            section.state(fmt::format("/training/deepspeed/{}/{}", name, key), *flag ? "true" : "false", key);
    if (section.flag("bf16_optimizer_states") == true &&
        section.flag("bf16_master_weights_and_grads") != true)
        section.note(Finding::rejected, "bf16_optimizer_states", "needs bf16_master_weights_and_grads",
                     "enable both, or neither");
}

void import_compute_dtype(const DeepSpeedSection& config, Switch fp16, Switch bf16) {
    if (fp16 == Switch::on)
        config.state_word("/training/compute_dtype", "fp16", "fp16");
    else if (bf16 == Switch::on)
        config.state_word("/training/compute_dtype", "bf16", config.has("bf16") ? "bf16" : "bfloat16");
    else if (fp16 == Switch::automatic || bf16 == Switch::automatic)
        config.ask("/training/compute_dtype", bf16 == Switch::automatic ? "bf16" : "fp16",
                   "\"auto\": Hugging Face's Trainer enables what --bf16 or --fp16 asks for",
                   "tell the dtype with --dtype; a plan without it takes bf16");
    else {
        config.state_word("/training/compute_dtype", "fp32", "bf16");
        config.note(Finding::resolved, "", "neither bf16 nor fp16 is enabled: DeepSpeed trains in fp32");
    }
}

/// A stated dtype; its own key of the scenario takes it.
void import_dtype(const DeepSpeedSection& section, const char* key, const char* pointer) {
    const auto word = section.word(key);
    if (!word || section.is_auto(key)) return;
    for (const char* known : {"fp32", "fp16", "bf16"})
        if (*word == known) return section.state_word(pointer, known, key);
    section.fail(key, fmt::format("\"{}\" cannot be \"{}\"", key, *word), "one of: fp32, fp16, bf16");
}

}  // namespace

void import_precision(const DeepSpeedSection& config) {
    const auto fp16 = config.section("fp16"), bf16 = bf16_section(config);
    const Switch fp16_switch = read_switch(fp16), bf16_switch = read_switch(bf16);
    if (fp16_switch == Switch::on && bf16_switch == Switch::on)
        config.fail("bf16",
                    fmt::format("bf16 (line {}) and fp16 (line {}) are both enabled: DeepSpeed refuses that",
                                bf16->line("enabled"), fp16->line("enabled")),
                    "disable one: bf16 on A100 and newer, fp16 on V100 and older");
    if (fp16) import_options(*fp16, "fp16");
    if (bf16) import_options(*bf16, "bf16");
    import_compute_dtype(config, fp16_switch, bf16_switch);
    if (const auto types = config.section("data_types"))
        import_dtype(*types, "grad_accum_dtype", "/training/gradient_dtype");
    import_dtype(config, "communication_data_type", "/training/reduce_dtype");
}

}  // namespace zeroplan
