#include "zeroplan/command/scenario_flags.hpp"

#include <array>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "zeroplan/command/output_files.hpp"
#include "zeroplan/import.hpp"
#include "zeroplan/remedies.hpp"
#include "zeroplan/what_if_io.hpp"
#include "zeroplan/words.hpp"

namespace zeroplan::command {
namespace {

enum class ValueKind { json, word, model, topology, calibration };

/// A flag that is an override of one key of the scenario.
struct KeyFlag {
    const char* name;
    const char* pointer;
    ValueKind kind;
    const char* value_name;
    const char* help;
};

constexpr std::array key_flags{
    KeyFlag{"--model", "/model", ValueKind::model, "NAME|FILE|DIR",
            "A preset (zeroplan list models), a config.json, safetensors, or a folder of them"},
    KeyFlag{"--topology", "/cluster/topology", ValueKind::topology, "NAME|FILE",
            "The machines: a preset (zeroplan list topologies) or a file"},
    KeyFlag{"--nodes", "/cluster/nodes", ValueKind::json, "N", "Nodes of the cluster"},
    KeyFlag{"--gpus", "/cluster/gpus_used", ValueKind::json, "N",
            "All ranks: part of one node, or whole nodes"},
    KeyFlag{"--gpu", "/cluster/gpu", ValueKind::word, "NAME",
            "Another GPU in these machines (zeroplan list gpus)"},
    KeyFlag{"--engine", "/training/engine", ValueKind::word, "E", "Training engine (zeroplan list engines)"},
    KeyFlag{"--zero", "/training/zero_stage", ValueKind::json, "0|1|2|3", "ZeRO stage"},
    KeyFlag{"--tp", "/training/tensor_parallel", ValueKind::json, "N", "Tensor-parallel degree"},
    KeyFlag{"--pp", "/training/pipeline_parallel", ValueKind::json, "N", "Pipeline-parallel degree"},
    KeyFlag{"--cp", "/training/context_parallel", ValueKind::json, "N", "Context-parallel degree"},
    KeyFlag{"--ep", "/training/expert_parallel", ValueKind::json, "N", "Expert-parallel degree"},
    KeyFlag{"--shard-group", "/training/shard_group", ValueKind::json, "N",
            "Ranks that share one copy of the sharded state"},
    KeyFlag{"--hpz", "/training/secondary_shard_group", ValueKind::json, "N",
            "Ranks of ZeRO++'s secondary shard group"},
    KeyFlag{"--micro-batch", "/training/micro_batch_size", ValueKind::json, "B",
            "Sequences a rank and micro-batch"},
    KeyFlag{"--seq", "/training/sequence_length", ValueKind::json, "S", "Tokens a sequence"},
    KeyFlag{"--grad-accum", "/training/gradient_accumulation_steps", ValueKind::json, "A",
            "Micro-batches a step"},
    KeyFlag{"--optimizer", "/training/optimizer", ValueKind::word, "O", "sgd, sgd_momentum, adam, adamw, …"},
    KeyFlag{"--dtype", "/training/compute_dtype", ValueKind::word, "D",
            "Compute dtype: fp32, tf32, fp16, bf16, fp8"},
    KeyFlag{"--recompute", "/training/recompute", ValueKind::word, "R",
            "none, selective, selective_op, selective_layer, full"},
    KeyFlag{"--attention", "/training/attention", ValueKind::word, "A", "flash, sdpa, eager"},
    KeyFlag{"--offload-optimizer", "/training/offload_optimizer", ValueKind::word, "T", "none, cpu, nvme"},
    KeyFlag{"--offload-parameters", "/training/offload_parameters", ValueKind::word, "T", "none, cpu, nvme"},
    KeyFlag{"--calibration", "/cluster/calibration", ValueKind::calibration, "FILE[,FILE…]",
            "Figures measured on this cluster, as zeroplan import makes them of nccl-tests logs"},
};

/// Another program's configuration, which lies beneath the scenario file and the other flags.
struct ImportFlag {
    const char* name;
    Import (*read)(std::string_view text, const std::string& file, const ImportContext& context);
    const char* value_name;
    const char* help;
};
constexpr std::array import_flags{
    ImportFlag{"--deepspeed", import_deepspeed, "ds_config.json",
               "DeepSpeed configuration (zeroplan import explains it); flags and the scenario override it"},
    ImportFlag{"--accelerate", import_accelerate, "config.yaml",
               "accelerate configuration: FSDP, DeepSpeed or DDP; flags and the scenario override it"},
};

constexpr const char* group = "Describing the scenario";

Setting json_setting(const KeyFlag& flag, const std::string& text) {
    Setting setting = text_setting(flag.pointer, text, flag.name);
    if (setting.json_value == "null")
        throw Error(ErrorCode::invalid_input, fmt::format("null is no value of {}", flag.name),
                    fmt::format("leave {} out to take the default; --set {}=null takes it where a file says "
                                "something else",
                                flag.name, flag.pointer),
                    {"command line", flag.name});
    return setting;
}

/// A value as an error has it: null is what takes a default.
std::string in_words(const std::string& json_value) {
    return json_value == "null" ? "null, its default," : json_value;
}

/// Nobody can tell which of two is meant.
void refuse_contradictions(std::span<const Setting> settings, const std::string& file) {
    const auto found = find_contradiction(settings);
    if (!found) return;
    const std::string message =
        found->second_value.empty()
            ? fmt::format("this takes the place of {} = {}, which {} says", found->pointer,
                          found->first_value, found->first.origin)
            : fmt::format("{} is {} here, but {} says {}", found->pointer, in_words(found->second_value),
                          found->first.origin, in_words(found->first_value));
    throw Error(ErrorCode::invalid_input, message, "keep one of the two", {file, found->second.origin});
}

/// Settings of all files, each with its file beside its line.
std::vector<Setting> all_settings(const std::vector<ImportedScenario>& imported) {
    std::vector<Setting> settings;
    for (const ImportedScenario& source : imported)
        for (Setting setting : source.settings) {
            setting.origin = fmt::format("{}: {}", source.file, setting.origin);
            settings.push_back(std::move(setting));
        }
    return settings;
}

Setting to_setting(const KeyFlag& flag, const std::string& text) {
    switch (flag.kind) {
        case ValueKind::json:
            return json_setting(flag, text);
        case ValueKind::word:
            return word_setting(flag.pointer, text, flag.name);
        case ValueKind::model:
            return model_setting(text, flag.name);
        case ValueKind::topology:
            return topology_setting(text, flag.name);
        case ValueKind::calibration:
            return calibration_setting(text, flag.name);
    }
    return {};
}

std::vector<Import> read_imports(const ScenarioFlags& flags, const ImportContext& context) {
    std::vector<Import> imports;
    for (const ImportFlag& flag : import_flags)
        if (const auto found = flags.values.find(flag.name); found != flags.values.end()) {
            imports.push_back(flag.read(read_text_file(found->second), found->second, context));
            imports.back().scenario.flag = flag.name;
        }
    return imports;
}

/// What a plan has to say of a finding: not what was understood as it stands, nor what has been told
/// meanwhile.
bool is_worth_a_warning(const ImportFinding& finding, const ScenarioRequest& request) {
    // A plan always has a number of ranks.
    if (finding.finding == Finding::resolved || finding.asks_for == "/cluster") return false;
    return finding.finding != Finding::missing || !is_stated(request, finding.asks_for);
}

Warning to_warning(const Import& import, const ImportFinding& finding) {
    std::string message = import.file;
    if (finding.line != 0) message += fmt::format(", line {}", finding.line);
    if (!finding.key.empty()) message += ": " + finding.key;
    message += ": " + finding.message;
    if (!finding.hint.empty()) message += "; " + finding.hint;
    return {fmt::format("{}_{}", to_string(import.kind), to_string(finding.finding)), message};
}

}  // namespace

void add_scenario_flags(CLI::App& app, ScenarioFlags& flags) {
    app.add_option("--scenario", flags.scenario, "Scenario file; flags override it")
        ->type_name("FILE")
        ->group(group);
    for (const KeyFlag& flag : key_flags) {
        app.add_option_function<std::string>(
               flag.name, [&flags, name = flag.name](const std::string& text) { flags.values[name] = text; },
               flag.help)
            ->type_name(flag.value_name)
            ->group(group);
    }
    app.add_option(
           "--set", flags.set,
           "Any other key, as /training/loss=fused; null takes its default; may be given several times")
        ->type_name("/POINTER=VALUE")
        ->allow_extra_args(false)
        ->group(group);
    app.add_option("--save-scenario", flags.save_scenario, "Write what was resolved, every default filled in")
        ->type_name("FILE")
        ->group(group);
    for (const ImportFlag& flag : import_flags) {
        app.add_option_function<std::string>(
               flag.name, [&flags, name = flag.name](const std::string& text) { flags.values[name] = text; },
               flag.help)
            ->type_name(flag.value_name)
            ->group(group);
    }
}

ScenarioRequest to_request(const ScenarioFlags& flags) {
    ScenarioRequest request;
    request.file = flags.scenario;
    for (const KeyFlag& flag : key_flags)
        if (const auto found = flags.values.find(flag.name); found != flags.values.end())
            request.settings.push_back(to_setting(flag, found->second));
    for (const std::string& text : flags.set) request.settings.push_back(parse_setting(text, "--set"));
    request.settings.insert(request.settings.end(), flags.more.begin(), flags.more.end());
    refuse_contradictions(request.settings, "command line");
    for (const Import& import : read_imports(flags, {})) request.imported.push_back(import.scenario);
    if (request.imported.size() > 1) refuse_contradictions(all_settings(request.imported), "command line");
    return request;
}

Scenario resolve(const ScenarioFlags& flags) {
    return resolve_scenario(to_request(flags));
}

std::function<void()> save_step(const ScenarioFlags& flags, const Scenario& scenario) {
    if (flags.save_scenario.empty()) return [] {};
    const WhatIf what_if = resolve_what_if(to_request(flags), scenario);
    return file_step(flags.save_scenario, [text = scenario_json(scenario, what_if) + "\n"] { return text; });
}

std::vector<Warning> import_warnings(const ScenarioFlags& flags, const Scenario& scenario) {
    std::vector<Warning> warnings;
    const ScenarioRequest request = to_request(flags);
    ImportContext context;
    context.hidden_size = scenario.model.hidden_size;
    for (const Import& import : read_imports(flags, context))
        for (const ImportFinding& finding : import.findings)
            if (is_worth_a_warning(finding, request)) warnings.push_back(to_warning(import, finding));
    return warnings;
}

Plan plan(const ScenarioFlags& flags) {
    const Scenario scenario = resolve(flags);
    try {
        Plan plan = make_plan(scenario);
        for (Warning& warning : import_warnings(flags, scenario)) plan.warnings.push_back(std::move(warning));
        return plan;
    } catch (const Error& error) {
        throw blame(error, to_request(flags));
    }
}

Plan plan_with_remedies(const ScenarioFlags& flags) {
    Plan plan = command::plan(flags);
    plan.remedies = find_remedies(plan);
    return plan;
}

}  // namespace zeroplan::command
