#include <fmt/format.h>

#include "architectures/encoder.hpp"
#include "import/config_other.hpp"

namespace zeroplan {
namespace {

/// By the end of the class's name: "BertForMaskedLM", "RobertaForMaskedLM".
BertHead head_of(const std::string& architecture) {
    if (architecture.ends_with("ForMaskedLM")) return BertHead::masked_language_model;
    if (architecture.ends_with("ForPreTraining")) return BertHead::pretraining;
    if (architecture.ends_with("ForTokenClassification")) return BertHead::token_classification;
    if (architecture.ends_with("Model")) return BertHead::none;
    return BertHead::sequence_classification;
}

bool is_named(const ConfigObject& config) {
    return config.has("architectures");
}

/// Post-norm layers with biases throughout, and a head by the class.
ReadConfig read_encoder(const ConfigObject& config, const std::string& name, BertKin kin,
                        const LayerDefaults& sizes, std::uint64_t token_types) {
    ReadConfig result;
    DecoderConfig& layers = result.decoder;
    layers = read_layers(config, sizes);
    layers.name = name;
    layers.architecture = counted_class(config);
    layers.mlp = "gelu";
    layers.activation = config.string({"hidden_act", "activation"}).value_or("gelu");
    if (layers.activation == "relu") layers.mlp = "relu";
    layers.position_embedding = "learned";
    layers.normalization = "layernorm";
    layers.attention_bias = layers.attention_output_bias = layers.mlp_bias = true;
    layers.tie_word_embeddings = config.boolean("tie_word_embeddings").value_or(true);
    layers.norm_placement = NormPlacement::after;
    layers.token_types = token_types;
    if (!is_named(config))
        result.notes.push_back(fmt::format(
            "no \"architectures\" says what stands on the encoder: counted is {} with its classes "
            "(num_labels); engine megatron always trains its own pretraining heads",
            layers.architecture));
    result.build = [layers, kin, head = head_of(layers.architecture),
                    labels = label_count(config)](const LoweringOptions& options) {
        return build_bert(layers, kin, head, labels, options);
    };
    return result;
}

}  // namespace

// Defaults of transformers' configuration_bert.py, configuration_roberta.py, configuration_distilbert.py.
ReadConfig read_bert(const ConfigObject& config, const std::string& name) {
    return read_encoder(config, name, BertKin::bert,
                        {.vocabulary = 30522,
                         .hidden = 768,
                         .intermediate = 3072,
                         .layers = 12,
                         .heads = 12,
                         .positions = 512},
                        size_or(config, {"type_vocab_size"}, 2));
}

ReadConfig read_roberta(const ConfigObject& config, const std::string& name) {
    return read_encoder(config, name, BertKin::roberta,
                        {.vocabulary = 50265,
                         .hidden = 768,
                         .intermediate = 3072,
                         .layers = 12,
                         .heads = 12,
                         .positions = 512},
                        size_or(config, {"type_vocab_size"}, 2));
}

ReadConfig read_distilbert(const ConfigObject& config, const std::string& name) {
    return read_encoder(config, name, BertKin::distilbert,
                        {.vocabulary = 30522,
                         .hidden = 768,
                         .intermediate = 3072,
                         .layers = 6,
                         .heads = 12,
                         .positions = 512},
                        0);
}

}  // namespace zeroplan
