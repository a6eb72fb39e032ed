#include "import/checkpoint.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "import/config_json.hpp"
#include "import/fused_experts.hpp"
#include "import/infer_config.hpp"
#include "import/stack_checkpoint.hpp"
#include "import/unpacked_blocks.hpp"
#include "json/parse.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string shape_text(const std::vector<std::uint64_t>& shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Buffers that older checkpoints carry beside their parameters: tables of the rotary embedding, GPT-2's
/// causal mask.
bool is_buffer(std::string_view name) {
    return name.ends_with(".inv_freq") || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

/// A checkpoint of the model without its output layer leaves the prefix out: "wte.weight" for
/// "transformer.wte.weight".
const CheckpointTensor* find_tensor(const CheckpointHeader& checkpoint, const std::string& name) {
    const auto found = checkpoint.tensors.find(name);
    if (found != checkpoint.tensors.end()) return &found->second;
    const auto dot = name.find('.');
    const auto bare = checkpoint.tensors.find(name.substr(dot + 1));
    return bare == checkpoint.tensors.end() || name.starts_with("lm_head") ? nullptr : &bare->second;
}

void check_parameters(const ModelSpec& model, const CheckpointHeader& checkpoint) {
    for (const Parameter& parameter : model.parameters) {
        const CheckpointTensor* tensor = find_tensor(checkpoint, parameter.name);
        if (tensor == nullptr) {
            if (parameter.shared_with) continue;  // saved once, under its first name
            throw Error(ErrorCode::invalid_input,
                        fmt::format("{} {} of {} is missing in the checkpoint", parameter.name,
                                    shape_text(parameter.shape), model.architecture),
                        "config.json and checkpoint belong to different models, or a shard is missing",
                        {checkpoint.path.string(), ""});
        }
        if (tensor->shape != parameter.shape)
            throw Error(
                ErrorCode::invalid_input,
                fmt::format("{} has shape {} in the checkpoint, but {} in {}", parameter.name,
                            shape_text(tensor->shape), shape_text(parameter.shape), model.architecture),
                "config.json and checkpoint belong to different models", {tensor->file, ""});
    }
}

void check_nothing_is_left(const ModelSpec& model, const CheckpointHeader& checkpoint) {
    std::vector<std::string_view> known;
    for (const Parameter& parameter : model.parameters) {
        known.push_back(parameter.name);
        known.push_back(std::string_view(parameter.name).substr(parameter.name.find('.') + 1));
    }
    std::sort(known.begin(), known.end());
    for (const auto& [name, tensor] : checkpoint.tensors)
        if (!is_buffer(name) && !std::binary_search(known.begin(), known.end(), name))
            throw Error(ErrorCode::not_supported,
                        fmt::format("{} {} has no place in a model of class {}", name,
                                    shape_text(tensor.shape), model.architecture),
                        "give the model's config.json as {\"file\": …}; it names the family",
                        {tensor.file, ""});
}

ReadConfig inferred_config(const CheckpointHeader& checkpoint, const std::string& name,
                           const ObjectReader& model) {
    const json inferred = infer_config(checkpoint);
    ReadConfig config =
        read_config(ConfigObject(ObjectReader(inferred, {checkpoint.path.string(), ""}), model), name);
    for (const json& note : inferred.at("notes")) config.notes.push_back(note.get<std::string>());
    return config;
}

ModelSpec described_model(const CheckpointHeader& checkpoint, const std::string& name,
                          const ObjectReader& model, const LoweringOptions& options) {
    const fs::path beside = checkpoint.path.parent_path() / "config.json";
    std::error_code error;
    if (fs::exists(beside, error)) {
        const json body = parse_json(read_text_file(beside.string()), beside.string());
        return build_model(read_config(ConfigObject(ObjectReader(body, {beside.string(), ""}), model), name),
                           options);
    }
    if (auto stack = read_stack_checkpoint(checkpoint, name, model)) return *std::move(stack);
    return build_model(inferred_config(checkpoint, name, model), options);
}

}  // namespace

ModelSpec read_checkpoint(const CheckpointHeader& saved, const std::string& name, const ObjectReader& model,
                          const LoweringOptions& options) {
    const CheckpointHeader checkpoint = with_fused_experts(with_unpacked_blocks(saved));
    ModelSpec result = described_model(checkpoint, name, model, options);
    check_parameters(result, checkpoint);
    check_nothing_is_left(result, checkpoint);
    result.notes.insert(result.notes.end(), checkpoint.notes.begin(), checkpoint.notes.end());
    return result;
}

}  // namespace zeroplan
