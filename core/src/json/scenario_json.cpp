#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "import/complete_batch.hpp"
#include "import/json_looks.hpp"
#include "import/model_reader.hpp"
#include "json/adapter_json.hpp"
#include "json/cluster_json.hpp"
#include "json/object_reader.hpp"
#include "json/run_json.hpp"
#include "json/scenario_document.hpp"
#include "json/scenario_to_json.hpp"
#include "json/settings.hpp"
#include "json/training_json.hpp"
#include "json/what_if_json.hpp"
#include "zeroplan/what_if_io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::uint64_t schema = 1;

/// Engines that train modules as their users wrote them, in PyTorch operators.
bool trains_torch_modules(EngineKind engine) {
    switch (engine) {
        case EngineKind::ddp:
        case EngineKind::ddp_zero_optimizer:
        case EngineKind::deepspeed:
        case EngineKind::fsdp1:
        case EngineKind::fsdp2:
        case EngineKind::single:
            return true;
        default:
            return false;
    }
}

LoweringOptions lowering_of(const TrainingConfig& training) {
    LoweringOptions options;
    options.attention = training.attention;
    options.loss = training.loss;
    options.kernels = training.kernels;
    options.compute_dtype = training.compute_dtype;
    options.torch_modules = trains_torch_modules(training.engine);
    options.autocast = uses_autocast(training);
    return options;
}

void check_schema(const ObjectReader& scenario) {
    const auto stated = scenario.integer("schema");
    if (stated && *stated != schema)
        scenario.fail("schema",
                      fmt::format("schema {} is stated, this version reads schema {}", *stated, schema),
                      "use the version of zeroplan that wrote the file");
}

/// `"model": "mistral-7b"`, which the command line's --model takes, but a scenario doesn't.
Error model_is_no_object(const std::string& text, const ErrorPlace& place) {
    const bool path = text.find('/') != std::string::npos || text.find(".json") != std::string::npos ||
                      text.find(".safetensors") != std::string::npos;
    return {
        ErrorCode::invalid_input, fmt::format("\"model\" must be an object, but is {}", json(text).dump()),
        fmt::format("write {}: {{\"preset\": name}} is a built-in model, {{\"file\": path}} a config.json, "
                    "safetensors or a folder of them, and the keys of a config.json may stand there, too",
                    json{{path ? "file" : "preset", text}}.dump()),
        place};
}

/// A size overflowed while `place` was worked out, which nothing there could know.
template <class Read>
auto overflowing_at(const ErrorPlace& place, Read read) {
    try {
        return read();
    } catch (const Error& error) {
        if (error.code() != ErrorCode::overflow || !error.place().pointer.empty()) throw;
        throw Error(error.code(), error.message(), error.hint(), place);
    }
}

/// Files of other kinds that a user has at hand.
void check_is_scenario(const ObjectReader& scenario) {
    const JsonLook* look = json_look(scenario.value());
    if (look == nullptr || look->what == "a scenario") return;
    throw Error(ErrorCode::invalid_input, fmt::format("this is {}, not a scenario", look->what),
                std::string(look->hint), scenario.place(look->key));
}

ModelSpec read_model_of(const ObjectReader& scenario, const ScenarioDocument& document,
                        const TrainingConfig& training) {
    const json* model = scenario.find("model");
    if (model == nullptr)
        throw Error(ErrorCode::invalid_input, "no model is given",
                    "name one with --model (zeroplan list models shows the presets), or put \"model\" into "
                    "the scenario",
                    {document.file, ""});
    if (model->is_string()) throw model_is_no_object(model->get<std::string>(), scenario.place("model"));
    const std::string folder = std::filesystem::path(document.file).parent_path().string();
    const ErrorPlace place = scenario.place("model");
    return overflowing_at(place, [&] {
        return as_trained(read_model(*model, folder, lowering_of(training), place), training);
    });
}

/// No operator has a window: attention is planned over the whole sequence.
void note_sliding_window(Scenario& scenario) {
    if (!scenario.model.decoder) return;
    const std::uint64_t window = scenario.model.decoder->sliding_window,
                        sequence = scenario.training.sequence_length;
    if (window != 0 && window < sequence)
        scenario.model.notes.push_back(
            fmt::format("the model's window of attention, {} tokens (sliding_window or chunks), is not "
                        "modelled: attention is planned over all "
                        "{} tokens, so time, and memory with eager attention, are estimated from above",
                        format_count(window), format_count(sequence)));
}

/// A rotary embedding has no last position, but a model was not trained beyond this one.
void note_long_sequences(Scenario& scenario) {
    const std::uint64_t longest = scenario.model.max_sequence_length,
                        chosen = scenario.training.sequence_length;
    if (chosen > longest)
        scenario.model.notes.push_back(
            fmt::format("sequences of {} tokens are longer than the {} that model {} is configured for",
                        chosen, longest, scenario.model.name));
}

Scenario read_scenario(const ScenarioDocument& document) {
    const json nothing = json::object();
    const ObjectReader object(document.json, {document.file, ""});
    check_is_scenario(object);
    object.allow_only({"schema", "model", "training", "cluster", "run", "what_if"});
    check_schema(object);
    const auto part = [&](const char* key) -> const json& {
        const json* found = object.find(key);
        return found == nullptr ? nothing : *found;
    };
    const TrainingInput input = read_training(part("training"), object.place("training"));
    const TrainingConfig training = with_engine_defaults(input);
    Scenario scenario;
    scenario.cluster = read_cluster(part("cluster"), object.place("cluster"));
    check_compute_dtype(training, scenario.cluster.gpu, input.place);
    scenario.model = read_model_of(object, document, training);
    scenario.model_json = part("model").dump();
    scenario.training = overflowing_at(
        input.place, [&] { return fitted(training, input, scenario.model, scenario.cluster); });
    scenario.run =
        read_run(part("run"), scenario.model, scenario.training.sequence_length, object.place("run"));
    read_what_if(part("what_if"), scenario.cluster, object.place("what_if"));  // checked with the rest
    note_long_sequences(scenario);
    note_sliding_window(scenario);
    return scenario;
}

/// The same error, at the flag or in the imported file that put the wrong value there, if one did.
Error blame_source(const Error& error, const ScenarioDocument& document, const ScenarioRequest& request) {
    if (error.place().file != document.file) return error;
    for (const AppliedImport& applied : document.imported)
        if (is_prefix(applied.setting.pointer, error.place().pointer))
            return {error.code(), error.message(), error.hint(), {applied.file, applied.setting.origin}};
    return blame_setting(error, document.file, request.settings);
}

}  // namespace

Scenario resolve_scenario(const ScenarioRequest& request) {
    ScenarioDocument document = merge_scenario(request);
    try {
        complete_batch(document, request.imported);
        return read_scenario(document);
    } catch (const Error& error) {
        throw blame_source(error, document, request);
    }
}

WhatIf resolve_what_if(const ScenarioRequest& request, const Scenario& scenario) {
    const ScenarioDocument document = merge_scenario(request);
    const auto found = document.json.find("what_if");
    if (found == document.json.end() || found->is_null()) return {};
    try {
        return read_what_if(*found, scenario.cluster, {document.file, "/what_if"});
    } catch (const Error& error) {
        throw blame_source(error, document, request);
    }
}

std::string merged_scenario_json(const ScenarioRequest& request, int indent) {
    ScenarioDocument document = merge_scenario(request);
    try {
        complete_batch(document, request.imported);
    } catch (const Error& error) {
        throw blame_source(error, document, request);
    }
    return document.json.dump(indent, ' ', false, json::error_handler_t::replace);
}

Error blame(const Error& error, const ScenarioRequest& request) {
    if (!error.place().file.empty() || error.place().pointer.empty()) return error;
    return blame_source(error.in_file(request.file), merge_scenario(request), request);
}

ordered_json scenario_to_json(const Scenario& scenario) {
    ordered_json out;
    out["schema"] = schema;
    out["model"] = ordered_json::parse(scenario.model_json);
    out["training"] = training_to_json(scenario.training);
    out["cluster"] = cluster_json(scenario.cluster);
    out["run"] = run_to_json(scenario.run);
    return out;
}

std::string scenario_json(const Scenario& scenario, int indent) {
    return scenario_to_json(scenario).dump(indent);
}

std::string scenario_json(const Scenario& scenario, const WhatIf& what_if, int indent) {
    ordered_json out = scenario_to_json(scenario);
    if (!what_if.empty()) out["what_if"] = what_if_to_json(what_if);
    return out.dump(indent);
}

}  // namespace zeroplan
