#include "architectures/encoder.hpp"
#include "import/config_other.hpp"

namespace zeroplan {
namespace {

BertHead head_of(const std::string& architecture) {
    if (architecture == "BertForMaskedLM") return BertHead::masked_language_model;
    if (architecture == "BertForPreTraining") return BertHead::pretraining;
    if (architecture == "BertForTokenClassification") return BertHead::token_classification;
    if (architecture == "BertModel") return BertHead::none;
    return BertHead::sequence_classification;
}

bool is_named(const ConfigObject& config) {
    return config.has("architectures");
}

}  // namespace

// Defaults of transformers' configuration_bert.py.
ReadConfig read_bert(const ConfigObject& config, const std::string& name) {
    ReadConfig result;
    DecoderConfig& layers = result.decoder;
    layers = read_layers(config, {.vocabulary = 30522,
                                  .hidden = 768,
                                  .intermediate = 3072,
                                  .layers = 12,
                                  .heads = 12,
                                  .positions = 512});
    layers.name = name;
    layers.architecture = counted_class(config);
    layers.mlp = "gelu";
    layers.activation = config.string({"hidden_act"}).value_or("gelu");
    if (layers.activation == "relu") layers.mlp = "relu";
    layers.position_embedding = "learned";
    layers.normalization = "layernorm";
    layers.attention_bias = layers.attention_output_bias = layers.mlp_bias = true;
    layers.tie_word_embeddings = config.boolean("tie_word_embeddings").value_or(true);
    layers.norm_placement = NormPlacement::after;
    layers.token_types = size_or(config, {"type_vocab_size"}, 2);
    if (!is_named(config))
        result.notes.push_back(
            "no \"architectures\" says what stands on the encoder: counted is BertForSequenceClassification "
            "with its classes (num_labels); engine megatron always trains its own pretraining heads");
    result.build = [layers, head = head_of(layers.architecture), labels = label_count(config)](
                       const LoweringOptions& options) { return build_bert(layers, head, labels, options); };
    return result;
}

}  // namespace zeroplan
