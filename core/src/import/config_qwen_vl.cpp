#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "architectures/vision.hpp"
#include "import/config_other.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using P = LayerPart;

// No size says how large an image is: this is the smallest whole square of patches that gives the 1280 tokens
// which transformers' image processor cuts an image down to (max_pixels 28 · 28 · 1280).
constexpr std::uint64_t usual_image = 1008, usual_patch = 14, usual_merge = 2, usual_width = 3584;

/// What both generations have: biased projections, query, key and value in one, rotary embedding.
DecoderConfig vision_layers(std::uint64_t hidden, std::uint64_t intermediate, const ConfigObject& config) {
    DecoderConfig layers;
    layers.hidden_size = hidden;
    layers.intermediate_size = intermediate;
    layers.num_hidden_layers = layers_or(config, {"depth"}, 32);
    layers.num_attention_heads = layers.num_key_value_heads = size_or(config, {"num_heads"}, 16);
    if (hidden % layers.num_attention_heads != 0)
        config.fail({"num_heads"},
                    fmt::format("the vision tower's width {} is not divisible by its {} heads", hidden,
                                layers.num_attention_heads),
                    "choose a number of heads that divides it");
    layers.head_dim = hidden / layers.num_attention_heads;
    layers.position_embedding = "rope";
    layers.attention_bias = layers.attention_output_bias = layers.mlp_bias = layers.fused_qkv = true;
    return layers;
}

VisionConfig vision_frame(const ConfigObject& config, DecoderConfig layers) {
    VisionConfig vision;
    vision.layers = std::move(layers);
    vision.names = {.layers = "blocks",
                    .packed_qkv = "attn.qkv",
                    .attention_output = "attn.proj",
                    .gate = "mlp.gate_proj",
                    .up = "mlp.fc1",
                    .down = "mlp.fc2",
                    .gated_up = "mlp.up_proj",
                    .attention_norm = "norm1",
                    .mlp_norm = "norm2",
                    .parts = {P::attention_norm, P::mlp_norm, P::attention, P::mlp}};
    vision.patch_size = size_or(config, {"patch_size"}, usual_patch);
    vision.channels = size_or(config, {"in_channels", "in_chans"}, 3);
    vision.frames = size_or(config, {"temporal_patch_size"}, 2);
    vision.patch_projection = "patch_embed.proj";
    vision.patch_bias = false;
    return vision;
}

// Defaults of transformers' configuration_qwen2_vl.py.
VisionConfig read_first(const ConfigObject& config) {
    const std::uint64_t width = size_or(config, {"embed_dim"}, 1280);
    const std::uint64_t ratio = size_or(config, {"mlp_ratio"}, 4);
    VisionConfig vision = vision_frame(config, vision_layers(width, ratio * width, config));
    vision.layers.mlp = "gelu";
    vision.layers.activation = "quick_gelu";
    vision.layers.normalization = "layernorm";
    return vision;
}

// Defaults of transformers' configuration_qwen2_5_vl.py.
VisionConfig read_second(const ConfigObject& config) {
    const std::uint64_t width = size_or(config, {"hidden_size"}, 3584);
    VisionConfig vision =
        vision_frame(config, vision_layers(width, size_or(config, {"intermediate_size"}, 3420), config));
    vision.layers.mlp = "swiglu";
    vision.layers.activation = "silu";
    vision.layers.normalization = "rmsnorm";
    vision.names.down = "mlp.down_proj";
    return vision;
}

/// The language model's keys, in an object of their own or beside the rest, as files on the hub have them.
json text_of(const ConfigObject& config, const std::string& model_type) {
    const auto nested = config.config().object("text_config");
    json text = nested ? nested->value() : config.config().value();
    if (config.overrides()) text.update(config.overrides()->value());
    if (config.boolean("tie_word_embeddings").value_or(false)) text["tie_word_embeddings"] = true;
    for (const char* key : {"architectures", "vision_config", "text_config", "image_size", "preset", "file"})
        text.erase(key);
    text["model_type"] = model_type + "_text";
    return text;
}

/// What the tower hands on has to be as wide as the language model.
void check_width(const ConfigObject& vision, const char* key, const DecoderConfig& text) {
    const std::uint64_t width = size_or(vision, {key}, usual_width);
    if (width != text.hidden_size)
        vision.fail({key},
                    fmt::format("the vision tower makes tokens {} wide, but the language model is {} wide",
                                width, text.hidden_size),
                    fmt::format("give vision_config.{} {}", key, text.hidden_size));
}

/// The image's side, a multiple of what makes one token, and its tokens.
void read_image(const ConfigObject& config, const ConfigObject& vision, ImageTextConfig& model) {
    constexpr std::uint64_t most_pixels = 1ULL << 16;
    const std::uint64_t merge = size_or(vision, {"spatial_merge_size"}, usual_merge);
    const std::uint64_t side = model.vision.patch_size * merge;
    const std::uint64_t image =
        size_or(config, {"image_size"}, std::max(usual_image / side, std::uint64_t{1}) * side);
    if (image > most_pixels || image % side != 0)
        config.fail({"image_size"},
                    fmt::format("images of {} pixels a side are no multiple of the {} that make a token",
                                image, side),
                    fmt::format("give a multiple of {} of at most {}", side, most_pixels));
    model.vision.image_size = image;
    model.image_tokens = (image / side) * (image / side);
}

ReadConfig read_qwen_vl(const ConfigObject& config, const std::string& name, const std::string& model_type,
                        VisionConfig (*read_vision)(const ConfigObject&)) {
    const json nothing = json::object();
    const auto given = config.holder("vision_config").object("vision_config");
    const ConfigObject vision(given ? *given : ObjectReader(nothing, config.config().place()));
    ImageTextConfig model{.vision = read_vision(vision), .projector = Projector::merger};
    read_image(config, vision, model);
    const json text = text_of(config, model_type);
    ReadConfig result = read_decoder_config(ConfigObject(ObjectReader(text, config.config().place())), name);
    check_width(vision, model_type == "qwen2_vl" ? "hidden_size" : "out_hidden_size", result.decoder);
    model.vision_prefix = "model.visual.";
    model.projector_prefix = "model.visual.merger.";
    model.text_prefix = "model.language_model.";
    model.head_prefix.clear();
    model.text = result.decoder;
    model.text.name = name;
    model.text.architecture = counted_class(config);
    result.decoder = model.text;
    result.notes.push_back(fmt::format(
        "one image of {0} × {0} pixels, {1} tokens, a sequence is assumed (image_size says otherwise); "
        "sequence_length counts them",
        model.vision.image_size, model.image_tokens));
    result.build = [model](const LoweringOptions& options) { return build_image_text(model, options); };
    return result;
}

}  // namespace

ReadConfig read_qwen2_vl(const ConfigObject& config, const std::string& name) {
    return read_qwen_vl(config, name, "qwen2_vl", read_first);
}

ReadConfig read_qwen2_5_vl(const ConfigObject& config, const std::string& name) {
    ReadConfig result = read_qwen_vl(config, name, "qwen2_5_vl", read_second);
    result.notes.push_back(
        "the vision tower's windows of attention are not modelled: its attention is planned over all "
        "patches, "
        "so its time is estimated from above");
    return result;
}

}  // namespace zeroplan
