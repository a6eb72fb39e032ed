#include <algorithm>
#include <array>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "import/accelerate_parts.hpp"
#include "import/deepspeed_config.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

/// A key of deepspeed_config and where DeepSpeedPlugin puts it.
struct PluginKey {
    const char* key;
    const char* pointer;
    bool is_integer;
};
constexpr std::array plugin_keys{
    PluginKey{"gradient_accumulation_steps", "/gradient_accumulation_steps", true},
    PluginKey{"zero_stage", "/zero_optimization/stage", true},
    PluginKey{"offload_optimizer_device", "/zero_optimization/offload_optimizer/device", false},
    PluginKey{"offload_optimizer_nvme_path", "/zero_optimization/offload_optimizer/nvme_path", false},
    PluginKey{"offload_param_device", "/zero_optimization/offload_param/device", false},
    PluginKey{"offload_param_nvme_path", "/zero_optimization/offload_param/nvme_path", false}};

/// The stage without one. source: DeepSpeedPlugin, ACCELERATE_DEEPSPEED_ZERO_STAGE
constexpr std::uint64_t default_stage = 2;

/// The value as JSON: "none" is as good as absent, "auto" stays.
std::optional<json> plugin_value(const YamlSection& plugin, const PluginKey& key) {
    const auto text = plugin.text(key.key);
    if (!text || *text == "none") return std::nullopt;
    if (!key.is_integer || *text == "auto") return json(*text);
    return json(*plugin.integer(key.key));
}

/// The configuration that DeepSpeedPlugin makes of its keys, every line that of the key.
RelaxedJson made_of_keys(const YamlSection& config, const YamlSection& plugin) {
    RelaxedJson made;
    made.value = {{"zero_optimization", {{"stage", default_stage}}},
                  {"train_batch_size", "auto"},
                  {"train_micro_batch_size_per_gpu", "auto"},
                  {"gradient_accumulation_steps", "auto"}};
    made.lines[""] = config.line("deepspeed_config");
    for (const PluginKey& key : plugin_keys)
        if (const auto value = plugin_value(plugin, key)) {
            made.value[json::json_pointer(key.pointer)] = *value;
            made.lines[key.pointer] = plugin.line(key.key);
        }
    const std::string dtype = config.text("mixed_precision").value_or("no");
    if (dtype == "bf16" || dtype == "fp16") {
        made.value[dtype] = {{"enabled", true}};
        made.lines["/" + dtype] = config.line("mixed_precision");
    }
    if (plugin.flag("zero3_save_16bit_model") == true && made.value["zero_optimization"]["stage"] == 3) {
        constexpr const char* pointer = "/zero_optimization/stage3_gather_16bit_weights_on_model_save";
        made.value[json::json_pointer(pointer)] = true;
        made.lines[pointer] = plugin.line("zero3_save_16bit_model");
    }
    return made;
}

/// Beside the accelerate file, else from where one is.
std::string beside(const std::string& file, const std::string& name) {
    namespace fs = std::filesystem;
    const fs::path candidate = fs::path(file).parent_path() / name;
    std::error_code ignored;
    return fs::exists(candidate, ignored) ? candidate.string() : name;
}

/// With a file, accelerate refuses the keys that the file has to state. source:
/// DeepSpeedPlugin._deepspeed_config_checks
void refuse_other_keys(const YamlSection& config, const YamlSection& plugin) {
    for (const PluginKey& key : plugin_keys)
        if (plugin.has(key.key))
            plugin.note(Finding::rejected, key.key, "accelerate refuses it beside deepspeed_config_file",
                        "state it in that file and remove it here");
    if (config.has("mixed_precision") && config.text("mixed_precision") != "no")
        config.note(Finding::ignored, "mixed_precision",
                    "the DeepSpeed file's bf16 and fp16 sections decide");
}

void import_named_file(const YamlSection& config, const YamlSection& plugin, const std::string& name,
                       const ImportContext& context) {
    refuse_other_keys(config, plugin);
    const std::string path = beside(config.import().file, name);
    Import inner = import_deepspeed(read_text_file(path), path, context);
    Import& outer = config.import();
    for (ImportFinding& finding : inner.findings) {
        finding.key = finding.key.empty() ? path : path + ": " + finding.key;
        outer.findings.push_back(std::move(finding));
    }
    std::move(inner.figures.begin(), inner.figures.end(), std::back_inserter(outer.figures));
    for (Setting& setting : inner.scenario.settings) {
        setting.origin = path + ": " + setting.origin;
        outer.scenario.settings.push_back(std::move(setting));
    }
    outer.scenario.train_batch_size = inner.scenario.train_batch_size;
    outer.scenario.train_batch_size_origin = path + ": " + inner.scenario.train_batch_size_origin;
}

}  // namespace

void import_deepspeed_plugin(const YamlSection& config, const ImportContext& context) {
    const auto plugin = config.section("deepspeed_config");
    if (!plugin) {
        fail_at(config.import(), config.line("distributed_type"), "deepspeed_config",
                "distributed_type is DEEPSPEED, but there is no deepspeed_config",
                "as in deepspeed_config: {zero_stage: 3}");
    }
    if (const auto name = plugin->text("deepspeed_config_file"); name && *name != "none")
        return import_named_file(config, *plugin, *name, context);
    if (plugin->text("zero3_init_flag") && plugin->flag("zero3_init_flag") == true &&
        plugin->integer("zero_stage").value_or(default_stage) != 3)
        plugin->note(Finding::ignored, "zero3_init_flag", "works with stage 3 only");
    import_deepspeed_into(config.import(), made_of_keys(config, *plugin), context);
}

}  // namespace zeroplan
