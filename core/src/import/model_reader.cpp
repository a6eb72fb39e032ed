#include "import/model_reader.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "embedded_files.hpp"
#include "import/checkpoint.hpp"
#include "import/config_json.hpp"
#include "import/json_looks.hpp"
#include "import/stack_json.hpp"
#include "json/object_reader.hpp"
#include "json/parse.hpp"
#include "nearest.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// A config or a stack, told apart by its "layers".
ModelSpec read_body(const ConfigObject& body, const std::string& name, const LoweringOptions& options) {
    const bool is_stack = body.config().has("layers");
    if (!is_stack && body.has("layers"))
        body.fail(
            {"layers"},
            fmt::format("\"layers\" describes a plain stack, but {} is the configuration of a model", name),
            "leave the preset or file out to describe a stack; num_hidden_layers is the number of layers");
    if (is_stack) return read_stack(body, name);
    return build_model(read_config(body, name), options);
}

const embedded::File& find_preset(const ObjectReader& model) {
    const std::string name = *model.string("preset");
    for (const embedded::File& file : embedded::models())
        if (file.name == name) return file;
    std::vector<std::string_view> names;
    for (const embedded::File& file : embedded::models()) names.push_back(file.name);
    throw Error(ErrorCode::not_found, fmt::format("no model preset is named \"{}\"", name),
                nearest_hint(name, std::span<const std::string_view>(names)) +
                    "; a file is given with {\"file\": \"path\"}",
                model.place("preset"));
}

ModelSpec read_preset(const ObjectReader& model, const LoweringOptions& options) {
    const embedded::File& preset = find_preset(model);
    const std::string path = fmt::format("models/{}.json", preset.name);
    const json body = parse_json(preset.text, path);
    return read_body(ConfigObject(ObjectReader(body, {path, ""}), model), std::string(preset.name), options);
}

fs::path existing_path(const ObjectReader& model, const std::string& base_directory) {
    const std::string given = *model.string("file");
    const fs::path path = fs::path(base_directory) / given;
    std::error_code error;
    if (given.empty() || !fs::exists(path, error))
        throw Error(ErrorCode::not_found, fmt::format("there is no file \"{}\"", path.string()),
                    "a relative path starts at the scenario's own folder", model.place("file"));
    return path;
}

/// What a person would call the model: the folder of a file with a usual name, else the file.
std::string name_of(const fs::path& path) {
    std::error_code gone;  // the folder that a relative path starts in
    const fs::path whole = fs::absolute(path, gone), absolute = (gone ? path : whole).lexically_normal();
    const std::string file = absolute.filename().string();
    const bool usual = file.empty() || file == "config.json" || file.starts_with("model.safetensors");
    return usual ? absolute.parent_path().filename().string() : absolute.stem().string();
}

/// Other JSON files that a user has at hand.
void check_is_model(const ObjectReader& body, const fs::path& path, const ObjectReader& model) {
    if (path.filename().string().ends_with(".safetensors.index.json"))
        body.fail("weight_map", "the index of a checkpoint needs a \"weight_map\"",
                  "it says which file has which tensor: download it again, or give the config.json");
    if (body.has("model_type") || body.has("architectures") || body.has("layers")) return;
    const JsonLook* look = json_look(body.value());
    if (look != nullptr)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("{} is {}, not the config.json of a model", path.string(), look->what),
                    std::string(look->hint), model.place());
}

ModelSpec read_json_file(const fs::path& path, const ObjectReader& model, const LoweringOptions& options) {
    const json body = parse_json(read_text_file(path.string()), path.string());
    const ObjectReader reader(body, {path.string(), ""});
    if (reader.has("weight_map"))
        return read_checkpoint(read_index(reader, path), name_of(path), model, options);
    check_is_model(reader, path, model);
    return read_body(ConfigObject(reader, model), name_of(path), options);
}

/// A folder as people download it.
ModelSpec read_folder(const fs::path& folder, const ObjectReader& model, const LoweringOptions& options) {
    std::error_code error;
    const fs::path index = folder / "model.safetensors.index.json", single = folder / "model.safetensors",
                   config = folder / "config.json";
    if (fs::exists(index, error)) return read_json_file(index, model, options);
    if (fs::exists(single, error))
        return read_checkpoint(read_safetensors(single), name_of(single), model, options);
    if (fs::exists(config, error)) return read_json_file(config, model, options);
    throw Error(
        ErrorCode::not_found,
        fmt::format("the folder \"{}\" has no config.json, model.safetensors or model.safetensors.index.json",
                    folder.string()),
        "give the file itself", model.place("file"));
}

ModelSpec read_file(const ObjectReader& model, const std::string& base_directory,
                    const LoweringOptions& options) {
    const fs::path path = existing_path(model, base_directory);
    std::error_code error;
    if (fs::is_directory(path, error)) return read_folder(path, model, options);
    if (path.extension() == ".safetensors")
        return read_checkpoint(read_safetensors(path), name_of(path), model, options);
    return read_json_file(path, model, options);
}

void check_one_source(const ObjectReader& model) {
    if (model.has("preset") && model.has("file"))
        model.fail("file", "both \"preset\" and \"file\" are given", "keep one of the two");
    for (const std::string_view source : {"preset", "file"})
        if (model.find(source) != nullptr && !model.find(source)->is_string())
            model.fail(source,
                       fmt::format("\"{}\" must be a string, but is {}", source, shown(*model.find(source))));
}

}  // namespace

ModelSpec read_model(const json& value, const std::string& base_directory, const LoweringOptions& options,
                     ErrorPlace place) {
    const ObjectReader model(value, std::move(place));
    check_one_source(model);
    if (model.has("preset")) return read_preset(model, options);
    if (model.has("file")) return read_file(model, base_directory, options);
    const std::string name = model.has("layers") ? "stack" : model.string("model_type").value_or("model");
    return read_body(ConfigObject(model), name, options);
}

}  // namespace zeroplan
