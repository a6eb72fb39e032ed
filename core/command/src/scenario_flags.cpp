#include "zeroplan/command/scenario_flags.hpp"

#include <array>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "zeroplan/remedies.hpp"
#include "zeroplan/words.hpp"

namespace zeroplan::command {
namespace {

enum class ValueKind { json, word, model, topology };

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
};

/// Flags of CLI.md whose readers are not part of this version: known, so that they are refused by name.
struct RefusedFlag {
    const char* name;
    const char* what;
    const char* hint;
};
constexpr std::array refused_flags{
    RefusedFlag{
        "--deepspeed", "DeepSpeed configuration files are not read by this version",
        "state the same job with flags: --zero, --micro-batch, --grad-accum, --dtype, --optimizer, …"},
    RefusedFlag{"--accelerate", "accelerate configuration files are not read by this version",
                "state the same job with flags: --zero, --gpus, --dtype, --micro-batch, …"},
};

constexpr const char* group = "Describing the scenario";

Setting to_setting(const KeyFlag& flag, const std::string& text) {
    switch (flag.kind) {
        case ValueKind::json:
            return text_setting(flag.pointer, text, flag.name);
        case ValueKind::word:
            return word_setting(flag.pointer, text, flag.name);
        case ValueKind::model:
            return model_setting(text, flag.name);
        case ValueKind::topology:
            return topology_setting(text, flag.name);
    }
    return {};
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
    app.add_option("--set", flags.set, "Any other key, as /training/loss=fused; may be given several times")
        ->type_name("/POINTER=VALUE")
        ->allow_extra_args(false)
        ->group(group);
    app.add_option("--save-scenario", flags.save_scenario, "Write what was resolved, every default filled in")
        ->type_name("FILE")
        ->group(group);
    for (const RefusedFlag& flag : refused_flags) {
        app.add_option_function<std::string>(
               flag.name, [&flags, name = flag.name](const std::string& text) { flags.values[name] = text; })
            ->group("");  // not in the help
    }
}

ScenarioRequest to_request(const ScenarioFlags& flags) {
    for (const RefusedFlag& flag : refused_flags)
        if (flags.values.contains(flag.name))
            throw Error(ErrorCode::not_supported, flag.what, flag.hint, {"command line", flag.name});
    ScenarioRequest request;
    request.file = flags.scenario;
    for (const KeyFlag& flag : key_flags)
        if (const auto found = flags.values.find(flag.name); found != flags.values.end())
            request.settings.push_back(to_setting(flag, found->second));
    for (const std::string& text : flags.set) request.settings.push_back(parse_setting(text, "--set"));
    return request;
}

Scenario resolve(const ScenarioFlags& flags) {
    Scenario scenario = resolve_scenario(to_request(flags));
    if (!flags.save_scenario.empty()) write_text_file(flags.save_scenario, scenario_json(scenario) + "\n");
    return scenario;
}

Plan plan(const ScenarioFlags& flags) {
    const Scenario scenario = resolve(flags);
    try {
        Plan plan = make_plan(scenario);
        plan.remedies = find_remedies(plan);
        return plan;
    } catch (const Error& error) {
        throw blame(error, to_request(flags));
    }
}

}  // namespace zeroplan::command
