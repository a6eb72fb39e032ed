#include "import/config_other.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "import/choose_family.hpp"

namespace zeroplan {
namespace {

// No model is near these; larger numbers are mistakes.
constexpr std::uint64_t most_size = 1ULL << 24, most_layers = 10'000;

constexpr std::string_view bert_classes[] = {"BertForSequenceClassification", "BertForMaskedLM",
                                             "BertForPreTraining", "BertForTokenClassification", "BertModel"};
constexpr std::string_view bert_keys[] = {"type_vocab_size", "num_labels", "id2label", "linear_bias"};
constexpr std::string_view roberta_classes[] = {"RobertaForSequenceClassification", "RobertaForMaskedLM",
                                                "RobertaForTokenClassification", "RobertaModel"};
constexpr std::string_view distilbert_classes[] = {"DistilBertForSequenceClassification",
                                                   "DistilBertForMaskedLM",
                                                   "DistilBertForTokenClassification", "DistilBertModel"};
constexpr std::string_view distilbert_keys[] = {"dim",        "hidden_dim", "n_layers", "n_heads",
                                                "activation", "num_labels", "id2label", "linear_bias"};
constexpr std::string_view t5_classes[] = {"T5ForConditionalGeneration", "T5WithLMHeadModel"};
constexpr std::string_view mt5_classes[] = {"MT5ForConditionalGeneration"};
constexpr std::string_view t5_keys[] = {"d_kv",
                                        "d_ff",
                                        "num_decoder_layers",
                                        "feed_forward_proj",
                                        "relative_attention_num_buckets",
                                        "decoder_sequence_length"};
constexpr std::string_view vit_classes[] = {"ViTForImageClassification"};
constexpr std::string_view dinov2_classes[] = {"Dinov2ForImageClassification", "Dinov2Model"};
constexpr std::string_view vision_keys[] = {"image_size",     "patch_size", "num_channels", "mlp_ratio",
                                            "use_swiglu_ffn", "qkv_bias",   "num_labels",   "id2label"};
constexpr std::string_view llava_classes[] = {"LlavaForConditionalGeneration"};
constexpr std::string_view gemma3_classes[] = {"Gemma3ForConditionalGeneration"};
constexpr std::string_view nested_keys[] = {"text_config", "vision_config", "mm_tokens_per_image"};
constexpr std::string_view qwen2_vl_classes[] = {"Qwen2VLForConditionalGeneration"};
constexpr std::string_view qwen2_5_vl_classes[] = {"Qwen2_5_VLForConditionalGeneration"};
constexpr std::string_view qwen_vl_keys[] = {"text_config", "vision_config", "image_size"};
constexpr std::string_view mamba_classes[] = {"MambaForCausalLM"};
constexpr std::string_view mamba_keys[] = {"state_size",        "expand",   "conv_kernel",
                                           "intermediate_size", "use_bias", "use_conv_bias",
                                           "time_step_rank"};

const OtherFamily families[] = {
    {"bert", bert_classes, bert_keys, read_bert},
    {"t5", t5_classes, t5_keys, read_t5},
    {"roberta", roberta_classes, bert_keys, read_roberta},
    {"distilbert", distilbert_classes, distilbert_keys, read_distilbert},
    {"mt5", mt5_classes, t5_keys, read_mt5},
    {"vit", vit_classes, vision_keys, read_vit},
    {"dinov2", dinov2_classes, vision_keys, read_dinov2},
    {"llava", llava_classes, nested_keys, read_llava},
    {"gemma3", gemma3_classes, nested_keys, read_gemma3},
    {"qwen2_vl", qwen2_vl_classes, qwen_vl_keys, read_qwen2_vl},
    {"qwen2_5_vl", qwen2_5_vl_classes, qwen_vl_keys, read_qwen2_5_vl},
    {"mamba", mamba_classes, mamba_keys, read_mamba},
};

}  // namespace

std::span<const OtherFamily> other_families() {
    return families;
}

const OtherFamily* find_other_family(const ConfigObject& config) {
    const auto find = [](auto is) -> const OtherFamily* {
        const auto found = std::find_if(std::begin(families), std::end(families), is);
        return found == std::end(families) ? nullptr : found;
    };
    if (const auto model_type = config.string({"model_type"}))
        return find([&](const OtherFamily& family) { return family.model_type == *model_type; });
    const std::string named = first_architecture(config);
    return find([&](const OtherFamily& family) {
        return std::find(family.classes.begin(), family.classes.end(), named) != family.classes.end();
    });
}

std::string counted_class(const ConfigObject& config) {
    const std::span<const std::string_view> classes = find_other_family(config)->classes;
    const std::string named = first_architecture(config);
    if (named.empty()) return std::string(classes.front());
    if (std::find(classes.begin(), classes.end(), named) == classes.end())
        config.fail({"architectures"}, fmt::format("models of the class \"{}\" are not modelled", named),
                    fmt::format("name one of: {}", fmt::join(classes, ", ")), ErrorCode::not_supported);
    return named;
}

std::uint64_t size_or(const ConfigObject& config, const KeyNames& names, std::uint64_t usual) {
    return config.size(names, most_size).value_or(usual);
}

std::uint64_t layers_or(const ConfigObject& config, const KeyNames& names, std::uint64_t usual) {
    return config.size(names, most_layers).value_or(usual);
}

DecoderConfig read_layers(const ConfigObject& config, const LayerDefaults& usual) {
    DecoderConfig layers;
    layers.hidden_size = size_or(config, {"hidden_size", "d_model", "n_embd", "dim"}, usual.hidden);
    layers.num_hidden_layers =
        layers_or(config, {"num_hidden_layers", "num_layers", "n_layer", "n_layers"}, usual.layers);
    layers.num_attention_heads =
        size_or(config, {"num_attention_heads", "num_heads", "n_head", "n_heads"}, usual.heads);
    layers.num_key_value_heads = layers.num_attention_heads;
    layers.intermediate_size = size_or(config, {"intermediate_size", "d_ff", "ffn_hidden_size", "hidden_dim"},
                                       usual.intermediate != 0 ? usual.intermediate : 4 * layers.hidden_size);
    layers.vocab_size = size_or(config, {"vocab_size"}, usual.vocabulary);
    layers.vocab_size = std::max(layers.vocab_size, size_or(config, {"vocab_size_padded"}, 0));
    layers.max_position_embeddings =
        size_or(config, {"max_position_embeddings", "n_positions"}, usual.positions);
    if (usual.head_dim == 0 && layers.hidden_size % layers.num_attention_heads != 0)
        config.fail({"hidden_size"},
                    fmt::format("hidden size {} is not divisible by {} attention heads", layers.hidden_size,
                                layers.num_attention_heads),
                    "choose a number of heads that divides it");
    layers.head_dim = usual.head_dim != 0 ? usual.head_dim : layers.hidden_size / layers.num_attention_heads;
    return layers;
}

std::uint64_t label_count(const ConfigObject& config) {
    if (const auto given = config.size({"num_labels"}, most_size)) return *given;
    const nlohmann::json* names = config.holder("id2label").find("id2label");
    return names != nullptr && names->is_object() && !names->empty() ? names->size() : 2;
}

}  // namespace zeroplan
