#include "json/scenario_document.hpp"

#include <algorithm>
#include <filesystem>

#include "embedded_files.hpp"
#include "json/parse.hpp"
#include "json/restated_defaults.hpp"
#include "json/settings.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

json parse_document(const ScenarioRequest& request) {
    if (!request.file.empty()) return parse_json(read_text_file(request.file), request.file);
    return request.text.empty() ? json::object() : parse_json(request.text, "");
}

bool sets(std::span<const Setting> settings, std::string_view pointer) {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const Setting& setting) { return setting.pointer == pointer; });
}

/// The file's own words about what a setting is going to state.
void make_room(json& document, std::span<const Setting> settings) {
    const auto found = document.find("cluster");
    if (found == document.end() || !found->is_object()) return;
    const bool nodes = sets(settings, "/cluster/nodes"), gpus = sets(settings, "/cluster/gpus_used");
    if (nodes && !gpus) found->erase("gpus_used");
    if (gpus && !nodes) found->erase("nodes");
    if (!sets(settings, "/cluster/topology")) return;
    for (const char* key : {"gpus_per_node", "gpu", "intra_node", "inter_node", "host", "power_limit_watts"})
        found->erase(key);
}

/// A relative model file is meant from the scenario's folder; made absolute, the scenario can be written
/// elsewhere.
void make_model_path_absolute(json& document, const std::string& scenario_file) {
    const auto model = document.find("model");
    if (model == document.end() || !model->is_object()) return;
    const auto file = model->find("file");
    if (file == model->end() || !file->is_string()) return;
    namespace fs = std::filesystem;
    const fs::path given = file->get<std::string>(), base = fs::path(scenario_file).parent_path();
    std::error_code error;
    const fs::path absolute = fs::absolute(base / given, error);
    if (given.empty() || error) return;  // whoever opens it says so, with its place
    *file = absolute.lexically_normal().string();
}

/// The job that a model preset comes with, its "defaults": what the scenario doesn't say.
json preset_defaults(const json& document) {
    const auto model = document.find("model");
    if (model == document.end() || !model->is_object()) return {};
    const auto preset = model->find("preset");
    if (preset == model->end() || !preset->is_string()) return {};
    for (const embedded::File& file : embedded::models()) {
        if (file.name != preset->get_ref<const std::string&>()) continue;
        // Few presets have any: no need to parse the others twice.
        if (file.text.find("\"defaults\"") == std::string_view::npos) return {};
        return parse_json(file.text, "models/" + std::string(file.name) + ".json").value("defaults", json());
    }
    return {};
}

void put_beneath(json& document, const json& defaults) {
    for (const auto& [part, values] : defaults.items()) {
        json& target = document[part];
        if (target.is_null()) target = json::object();
        if (!target.is_object()) continue;  // the reader says so, with its place
        for (const auto& [key, value] : values.items())
            if (!target.contains(key) || target[key].is_null()) target[key] = value;
    }
}

/// Whether the file or a flag has `pointer`, or something in its place.
bool is_taken(const json& document, std::string_view pointer) {
    const json* at = &document;
    while (!pointer.empty()) {
        if (at->is_null()) return false;
        if (!at->is_object()) return true;
        pointer.remove_prefix(1);
        const auto end = std::min(pointer.find('/'), pointer.size());
        const auto found = at->find(pointer.substr(0, end));
        if (found == at->end()) return false;
        at = &*found;
        pointer.remove_prefix(end);
    }
    return !at->is_null();
}

constexpr std::string_view gpu_counts[] = {"/cluster/nodes", "/cluster/gpus_per_node", "/cluster/gpus_used"};

/// Keys that nothing above has. How many GPUs there are is one statement of up to three keys: whoever makes
/// part of it makes all of it.
void put_beneath(ScenarioDocument& merged, const ImportedScenario& imported) {
    const auto counts = [](std::string_view pointer) {
        return std::find(std::begin(gpu_counts), std::end(gpu_counts), pointer) != std::end(gpu_counts);
    };
    const bool counted = std::any_of(std::begin(gpu_counts), std::end(gpu_counts),
                                     [&](auto pointer) { return is_taken(merged.json, pointer); });
    for (const Setting& setting : imported.settings) {
        if (is_taken(merged.json, setting.pointer) || (counted && counts(setting.pointer))) continue;
        apply_setting(merged.json, setting);
        merged.imported.push_back({imported.file, setting});
    }
}

}  // namespace

bool is_stated(const ScenarioRequest& request, std::string_view pointer) {
    return is_taken(merge_scenario(request).json, pointer);
}

ScenarioDocument merge_scenario(const ScenarioRequest& request) {
    ScenarioDocument merged{parse_document(request), request.file};
    if (!merged.json.is_object())
        throw Error(ErrorCode::invalid_input, "a scenario is one JSON object",
                    R"(as in {"model": {"preset": "gpt2"}, "training": {"zero_stage": 3}})",
                    {request.file, ""});
    make_model_path_absolute(merged.json, request.file);
    if (!request.settings.empty()) {
        drop_restated_defaults(merged.json, request.file);
        make_room(merged.json, request.settings);
    }
    for (const Setting& setting : request.settings) apply_setting(merged.json, setting);
    for (const ImportedScenario& imported : request.imported) put_beneath(merged, imported);
    put_beneath(merged.json, preset_defaults(merged.json));
    return merged;
}

}  // namespace zeroplan
