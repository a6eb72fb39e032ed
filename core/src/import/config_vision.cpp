#include <utility>

#include <fmt/format.h>

#include "architectures/vision.hpp"
#include "import/config_other.hpp"

namespace zeroplan {
namespace {

using P = LayerPart;

// Of all these families' configuration classes.
constexpr LayerDefaults base_size{
    .hidden = 768, .intermediate = 3072, .layers = 12, .heads = 12, .positions = 1};

DecoderConfig vision_layers(const ConfigObject& config, bool query_bias) {
    DecoderConfig layers = read_layers(config, base_size);
    layers.mlp = "gelu";
    layers.activation = config.string({"hidden_act", "activation_function"}).value_or("gelu");
    layers.position_embedding = "learned";
    layers.normalization = "layernorm";
    layers.attention_bias = query_bias;
    layers.attention_output_bias = layers.mlp_bias = true;
    return layers;
}

void read_image(const ConfigObject& config, VisionConfig& vision, std::uint64_t image, std::uint64_t patch) {
    vision.image_size = size_or(config, {"image_size"}, image);
    vision.patch_size = size_or(config, {"patch_size"}, patch);
    vision.channels = size_or(config, {"num_channels"}, 3);
    constexpr std::uint64_t most_pixels = 1ULL << 16, most_channels = 1ULL << 10;
    if (vision.image_size > most_pixels || vision.channels > most_channels)
        config.fail({vision.image_size > most_pixels ? "image_size" : "num_channels"},
                    fmt::format("images of {} × {} pixels with {} channels are beyond any model",
                                vision.image_size, vision.image_size, vision.channels),
                    fmt::format("at most {} pixels a side and {} channels", most_pixels, most_channels));
    if (vision.image_size < vision.patch_size)
        config.fail({"patch_size"},
                    fmt::format("patches of {} pixels don't fit into images of {}", vision.patch_size,
                                vision.image_size),
                    "choose a smaller patch");
}

/// CLIPVisionModel, of transformers' modeling_clip.py.
VisionConfig read_clip(const ConfigObject& config) {
    VisionConfig vision;
    vision.layers = vision_layers(config, true);
    vision.names = {
        .layers = "encoder.layers",
        .query = "self_attn.q_proj",
        .key = "self_attn.k_proj",
        .value = "self_attn.v_proj",
        .attention_output = "self_attn.out_proj",
        .up = "mlp.fc1",
        .down = "mlp.fc2",
        .attention_norm = "layer_norm1",
        .mlp_norm = "layer_norm2",
        .parts = {P::attention, P::attention_norm, P::mlp, P::mlp_norm},
        .projections = {Projection::key, Projection::value, Projection::query, Projection::output}};
    read_image(config, vision, 224, 32);
    vision.patch_projection = "embeddings.patch_embedding";
    vision.class_token = "embeddings.class_embedding";
    vision.positions = "embeddings.position_embedding.weight";
    vision.first_norm = "pre_layrnorm";
    vision.last_norm = "post_layernorm";
    vision.patch_bias = false;
    return vision;
}

/// SiglipVisionModel without its pooling head.
VisionConfig read_siglip(const ConfigObject& config) {
    VisionConfig vision = read_clip(config);
    vision.layers = vision_layers(config, true);
    vision.names.parts = {P::attention_norm, P::attention, P::mlp_norm, P::mlp};
    read_image(config, vision, 224, 16);
    vision.class_token.clear();
    vision.first_norm.clear();
    vision.patch_bias = true;
    if (config.boolean("vision_use_head").value_or(true))
        config.fail({"vision_use_head"}, "SigLIP's pooling head is not modelled",
                    "set vision_use_head to false, as language models use it", ErrorCode::not_supported);
    return vision;
}

VisionConfig read_vision(const ConfigObject& config) {
    const std::string type = config.string({"model_type"}).value_or("clip_vision_model");
    if (type == "clip_vision_model") return read_clip(config);
    if (type == "siglip_vision_model") return read_siglip(config);
    config.fail({"model_type"}, fmt::format("vision models of the family \"{}\" are not modelled", type),
                "built are clip_vision_model, siglip_vision_model", ErrorCode::not_supported);
}

/// A nested object, whose decoder is a Llama unless it says otherwise.
ObjectReader nested(const ConfigObject& config, std::string_view key) {
    const auto found = config.holder(key).object(key);
    if (!found)
        config.fail({}, fmt::format("an image-text model needs \"{}\"", key),
                    fmt::format("give the whole config.json, with its {}", key));
    return *found;
}

ReadConfig read_image_text(const ConfigObject& config, const std::string& name, Projector projector) {
    const ObjectReader text = nested(config, "text_config"), vision = nested(config, "vision_config");
    ImageTextConfig model{.vision = read_vision(ConfigObject(vision)), .projector = projector};
    model.image_tokens = projector == Projector::pooled_linear ? size_or(config, {"mm_tokens_per_image"}, 256)
                                                               : model.vision.patches();
    ReadConfig result = read_decoder_config(ConfigObject(text), name);
    model.text = result.decoder;
    model.text.name = name;
    model.text.architecture = counted_class(config);
    result.decoder = model.text;
    result.notes.push_back(fmt::format(
        "one image of {} tokens a sequence is assumed; sequence_length counts them", model.image_tokens));
    result.build = [model](const LoweringOptions& options) { return build_image_text(model, options); };
    return result;
}

/// ViTLayer, whose attention DINOv2 has too.
DecoderNames vit_names() {
    return {.prefix = "vit.",
            .layers = "encoder.layer",
            .query = "attention.attention.query",
            .key = "attention.attention.key",
            .value = "attention.attention.value",
            .attention_output = "attention.output.dense",
            .up = "intermediate.dense",
            .down = "output.dense",
            .attention_norm = "layernorm_before",
            .mlp_norm = "layernorm_after",
            .parts = {P::attention, P::mlp, P::attention_norm, P::mlp_norm}};
}

DecoderNames dinov2_names() {
    DecoderNames names = vit_names();
    names.prefix = "dinov2.";
    names.up = "mlp.fc1";
    names.down = "mlp.fc2";
    names.packed_gate_up = "mlp.weights_in";
    names.attention_norm = "norm1";
    names.mlp_norm = "norm2";
    names.attention_scale = "layer_scale1.lambda1";
    names.mlp_scale = "layer_scale2.lambda1";
    names.parts = {P::attention_norm, P::attention, P::attention_scale, P::mlp_norm, P::mlp, P::mlp_scale};
    return names;
}

/// What ViT and DINOv2 have ahead of and behind their layers.
void read_vit_ends(const ConfigObject& config, VisionConfig& vision, std::uint64_t patch) {
    read_image(config, vision, 224, patch);
    vision.patch_projection = "embeddings.patch_embeddings.projection";
    vision.class_token = "embeddings.cls_token";
    vision.positions = "embeddings.position_embeddings";
    vision.last_norm = "layernorm";
    vision.flat_positions = false;
    vision.tokens_first = true;
}

ReadConfig image_classifier(const ConfigObject& config, const std::string& name, VisionConfig vision,
                            std::uint64_t features) {
    vision.layers.name = name;
    vision.layers.architecture = counted_class(config);
    ReadConfig result;
    result.decoder = vision.layers;
    result.build = [vision, features, labels = label_count(config)](const LoweringOptions& options) {
        return build_image_classifier(vision, features, labels, options);
    };
    return result;
}

/// Dinov2MLP, or Dinov2SwiGLUFFN.
void read_dinov2_mlp(const ConfigObject& config, VisionConfig& vision) {
    const double ratio = config.holder("mlp_ratio").number("mlp_ratio", 0, 64).value_or(4);
    auto width = static_cast<std::uint64_t>(ratio * static_cast<double>(vision.layers.hidden_size));
    if (config.boolean("use_swiglu_ffn").value_or(false)) {
        width = (width * 2 / 3 + 7) / 8 * 8;
        vision.layers.mlp = "swiglu";
        vision.layers.packed_gate_up = true;
        vision.names.down = "mlp.weights_out";
    }
    vision.layers.intermediate_size = width;
}

}  // namespace

ReadConfig read_llava(const ConfigObject& config, const std::string& name) {
    return read_image_text(config, name, Projector::two_linears);
}

ReadConfig read_gemma3(const ConfigObject& config, const std::string& name) {
    return read_image_text(config, name, Projector::pooled_linear);
}

// Defaults of transformers' configuration_vit.py and configuration_dinov2.py.
ReadConfig read_vit(const ConfigObject& config, const std::string& name) {
    VisionConfig vision;
    vision.layers = vision_layers(config, config.boolean("qkv_bias").value_or(true));
    vision.names = vit_names();
    read_vit_ends(config, vision, 16);
    return image_classifier(config, name, std::move(vision), 1);
}

ReadConfig read_dinov2(const ConfigObject& config, const std::string& name) {
    VisionConfig vision;
    vision.layers = vision_layers(config, config.boolean("qkv_bias").value_or(true));
    vision.names = dinov2_names();
    read_dinov2_mlp(config, vision);
    read_vit_ends(config, vision, 14);
    vision.mask_token = "embeddings.mask_token";
    return image_classifier(config, name, std::move(vision), 2);
}

}  // namespace zeroplan
