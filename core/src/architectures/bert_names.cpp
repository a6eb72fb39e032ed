#include "architectures/bert_names.hpp"

namespace zeroplan {
namespace {

DecoderNames post_norm_layers(std::string prefix) {
    DecoderNames names;
    names.prefix = std::move(prefix);
    names.layers = "encoder.layer";
    names.query = "attention.self.query";
    names.key = "attention.self.key";
    names.value = "attention.self.value";
    names.attention_output = "attention.output.dense";
    names.up = "intermediate.dense";
    names.down = "output.dense";
    names.attention_norm = "attention.output.LayerNorm";
    names.mlp_norm = "output.LayerNorm";
    names.parts = {LayerPart::attention, LayerPart::attention_norm, LayerPart::mlp, LayerPart::mlp_norm};
    return names;
}

BertNames names_of_bert() {
    return {.layers = post_norm_layers("bert."),
            .embeddings = "bert.embeddings",
            .layer_path = "bert.encoder.layer",
            .pooler = "bert.pooler.dense",
            .sequence_dense = "bert.pooler.dense",
            .sequence_classifier = "classifier",
            .transform = "cls.predictions.transform.dense",
            .transform_norm = "cls.predictions.transform.LayerNorm",
            .output_weight = "cls.predictions.decoder.weight",
            .output_bias = "cls.predictions.bias"};
}

/// Positions begin behind that of padding (padding_idx 1).
BertNames names_of_roberta() {
    return {.layers = post_norm_layers("roberta."),
            .embeddings = "roberta.embeddings",
            .layer_path = "roberta.encoder.layer",
            .pooler = "roberta.pooler.dense",
            .sequence_dense = "classifier.dense",
            .sequence_classifier = "classifier.out_proj",
            .transform = "lm_head.dense",
            .transform_norm = "lm_head.layer_norm",
            .output_weight = "lm_head.decoder.weight",
            .output_bias = "lm_head.bias",
            .unused_positions = 2};
}

BertNames names_of_distilbert() {
    DecoderNames layers = post_norm_layers("distilbert.");
    layers.layers = "transformer.layer";
    layers.query = "attention.q_lin";
    layers.key = "attention.k_lin";
    layers.value = "attention.v_lin";
    layers.attention_output = "attention.out_lin";
    layers.up = "ffn.lin1";
    layers.down = "ffn.lin2";
    layers.attention_norm = "sa_layer_norm";
    layers.mlp_norm = "output_layer_norm";
    return {.layers = layers,
            .embeddings = "distilbert.embeddings",
            .layer_path = "distilbert.transformer.layer",
            .sequence_dense = "pre_classifier",
            .sequence_classifier = "classifier",
            .relu_before_classifier = true,
            .transform = "vocab_transform",
            .transform_norm = "vocab_layer_norm",
            .output_weight = "vocab_projector.weight",
            .output_bias = "vocab_projector.bias",
            .bias_behind_norm = true};
}

}  // namespace

const BertNames& bert_names(BertKin kin) {
    static const BertNames bert = names_of_bert(), roberta = names_of_roberta(),
                           distilbert = names_of_distilbert();
    switch (kin) {
        case BertKin::roberta:
            return roberta;
        case BertKin::distilbert:
            return distilbert;
        case BertKin::bert:
            break;
    }
    return bert;
}

}  // namespace zeroplan
