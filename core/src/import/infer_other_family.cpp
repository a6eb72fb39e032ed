#include <array>

#include <nlohmann/json.hpp>

#include "import/infer_families.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

json infer_gpt2(const CheckpointShapes& shapes) {
    const std::uint64_t hidden = shapes.size("wte.weight", 1);
    json config = {{"model_type", "gpt2"},
                   {"vocab_size", shapes.size("wte.weight", 0)},
                   {"n_embd", hidden},
                   {"n_positions", shapes.size("wpe.weight", 0)},
                   {"n_inner", shapes.size("h.0.mlp.c_fc.weight", 1)},
                   {"n_layer", shapes.layers("h")},
                   {"tie_word_embeddings", !shapes.has_output_layer()},
                   {"notes", json::array()}};
    assume_heads(config, assumed_head_dim(0, hidden, hidden), hidden, hidden);  // 64 in every GPT-2
    return config;
}

/// Sizes of a decoder whose MLP widens in a tensor of [out, in].
json decoder(const CheckpointShapes& shapes, const char* model_type, const char* table, const char* list,
             const std::string& widening) {
    return {{"model_type", model_type},
            {"vocab_size", shapes.size(table, 0)},
            {"hidden_size", shapes.size(table, 1)},
            {"intermediate_size", shapes.size(std::string(list) + ".0." + widening, 0)},
            {"num_hidden_layers", shapes.layers(list)},
            {"notes", json::array()}};
}

void assume_equal_heads(json& config) {
    const auto hidden = config.at("hidden_size").get<std::uint64_t>();
    assume_heads(config, assumed_head_dim(hidden, hidden, hidden), hidden, hidden);
    config.erase("num_key_value_heads");
}

json infer_gpt_neo(const CheckpointShapes& shapes) {
    json config = decoder(shapes, "gpt_neo", "wte.weight", "h", "mlp.c_fc.weight");
    config["max_position_embeddings"] = shapes.size("wpe.weight", 0);
    config["tie_word_embeddings"] = !shapes.has_output_layer();
    assume_equal_heads(config);
    return config;
}

json infer_gptj(const CheckpointShapes& shapes) {
    json config = decoder(shapes, "gptj", "wte.weight", "h", "mlp.fc_in.weight");
    assume_equal_heads(config);
    return config;
}

json infer_mpt(const CheckpointShapes& shapes) {
    json config = decoder(shapes, "mpt", "wte.weight", "blocks", "ffn.up_proj.weight");
    const auto hidden = config.at("hidden_size").get<std::uint64_t>();
    config["d_model"] = hidden;
    config["expansion_ratio"] = config.at("intermediate_size").get<double>() / static_cast<double>(hidden);
    config.erase("intermediate_size");
    config["no_bias"] = !shapes.has("blocks.0.ffn.up_proj.bias");
    config["tie_word_embeddings"] = !shapes.has_output_layer();
    assume_equal_heads(config);
    return config;
}

json infer_gpt_neox(const CheckpointShapes& shapes) {
    json config = decoder(shapes, "gpt_neox", "embed_in.weight", "layers", "mlp.dense_h_to_4h.weight");
    config["attention_bias"] = shapes.has("layers.0.attention.query_key_value.bias");
    config["tie_word_embeddings"] = !shapes.has_whole("embed_out.weight");
    assume_equal_heads(config);
    return config;
}

json infer_bloom(const CheckpointShapes& shapes) {
    json config = decoder(shapes, "bloom", "word_embeddings.weight", "h", "mlp.dense_h_to_4h.weight");
    config["tie_word_embeddings"] = !shapes.has_output_layer();
    assume_equal_heads(config);
    return config;
}

/// 7B has one key/value head, 40B and 180B a norm for each branch and several key/value heads, Falcon-RW as
/// many as it has heads.
json infer_falcon(const CheckpointShapes& shapes) {
    json config = decoder(shapes, "falcon", "word_embeddings.weight", "h", "mlp.dense_h_to_4h.weight");
    const auto hidden = config.at("hidden_size").get<std::uint64_t>();
    const std::uint64_t rows = shapes.size("h.0.self_attention.query_key_value.weight", 0);
    const std::uint64_t key_value = rows > hidden + 1 ? (rows - hidden) / 2 : hidden;
    const bool two_norms = shapes.has("h.0.ln_attn.weight");
    const bool alike = key_value == hidden;
    config["new_decoder_architecture"] = two_norms;
    config["multi_query"] = !two_norms && !alike;
    config["bias"] = shapes.has("h.0.mlp.dense_h_to_4h.bias");
    config["tie_word_embeddings"] = !shapes.has_output_layer();
    if (!two_norms) config["parallel_attn"] = !shapes.has("h.0.post_attention_layernorm.weight");
    if (!two_norms && !alike) {
        config["num_attention_heads"] = hidden / key_value;  // of one key/value head
        return config;
    }
    constexpr std::uint64_t head_dim = 64;  // of every Falcon
    assume_heads(config, head_dim, hidden, key_value);
    if (two_norms) config["num_kv_heads"] = config["num_key_value_heads"];
    config.erase("num_key_value_heads");
    return config;
}

json infer_opt(const CheckpointShapes& shapes) {
    json config = decoder(shapes, "opt", "embed_tokens.weight", "layers", "fc1.weight");
    config["word_embed_proj_dim"] = config["hidden_size"];
    config["hidden_size"] = shapes.size("layers.0.fc1.weight", 1);
    config["ffn_dim"] = config["intermediate_size"];
    config["max_position_embeddings"] = shapes.size("embed_positions.weight", 0) - 2;
    config["enable_bias"] = shapes.has("layers.0.fc1.bias");
    config["do_layer_norm_before"] = shapes.has("final_layer_norm.weight");
    config["tie_word_embeddings"] = !shapes.has_output_layer();
    assume_equal_heads(config);
    return config;
}

json infer_bert(const CheckpointShapes& shapes) {
    json config = decoder(shapes, "bert", "embeddings.word_embeddings.weight", "encoder.layer",
                          "intermediate.dense.weight");
    config["max_position_embeddings"] = shapes.size("embeddings.position_embeddings.weight", 0);
    config["type_vocab_size"] = shapes.size("embeddings.token_type_embeddings.weight", 0);
    const bool pools = shapes.has("pooler.dense.weight");
    const char* architecture = "BertModel";
    if (shapes.has_whole("classifier.weight"))
        architecture = pools ? "BertForSequenceClassification" : "BertForTokenClassification";
    else if (shapes.has_whole("cls.seq_relationship.weight"))
        architecture = "BertForPreTraining";
    else if (shapes.has_whole("cls.predictions.bias"))
        architecture = "BertForMaskedLM";
    config["architectures"] = {architecture};
    if (shapes.has_whole("classifier.weight"))
        config["num_labels"] = shapes.whole_size("classifier.weight", 0);
    assume_equal_heads(config);
    return config;
}

json infer_t5(const CheckpointShapes& shapes) {
    const std::string block = "encoder.block.0.layer.";
    const bool gated = shapes.has(block + "1.DenseReluDense.wi_0.weight");
    const std::uint64_t inner = shapes.size(block + "0.SelfAttention.q.weight", 0),
                        heads = shapes.size(block + "0.SelfAttention.relative_attention_bias.weight", 1);
    return {{"model_type", "t5"},
            {"architectures", {"T5ForConditionalGeneration"}},
            {"vocab_size", shapes.size("shared.weight", 0)},
            {"d_model", shapes.size("shared.weight", 1)},
            {"d_ff",
             shapes.size(block + (gated ? "1.DenseReluDense.wi_0.weight" : "1.DenseReluDense.wi.weight"), 0)},
            {"num_layers", shapes.layers("encoder.block")},
            {"num_decoder_layers", shapes.layers("decoder.block")},
            {"num_heads", heads},
            {"d_kv", inner / heads},
            {"relative_attention_num_buckets",
             shapes.size(block + "0.SelfAttention.relative_attention_bias.weight", 0)},
            {"feed_forward_proj", gated ? "gated-gelu" : "relu"},
            {"tie_word_embeddings", !shapes.has_output_layer()},
            {"notes", json::array()}};
}

json infer_mamba(const CheckpointShapes& shapes) {
    const std::string mixer = "layers.0.mixer.";
    const std::uint64_t hidden = shapes.size("embeddings.weight", 1);
    return {{"model_type", "mamba"},
            {"vocab_size", shapes.size("embeddings.weight", 0)},
            {"hidden_size", hidden},
            {"num_hidden_layers", shapes.layers("layers")},
            {"expand", shapes.size(mixer + "A_log", 0) / hidden},
            {"state_size", shapes.size(mixer + "A_log", 1)},
            {"conv_kernel", shapes.size(mixer + "conv1d.weight", 2, 3)},
            {"time_step_rank", shapes.size(mixer + "dt_proj.weight", 1)},
            {"use_bias", shapes.has(mixer + "in_proj.bias")},
            {"use_conv_bias", shapes.has(mixer + "conv1d.bias")},
            {"tie_word_embeddings", !shapes.has_output_layer()},
            {"notes", json::array()}};
}

/// A family's tensors stand behind a prefix, or behind none in a checkpoint without its output layer.
struct Recognised {
    const char* prefix;
    const char* table;  ///< both are there
    const char* marker;
    json (*infer)(const CheckpointShapes& shapes);
};
// The first that fits is taken: what several have comes last.
constexpr std::array families{
    Recognised{"transformer.", "wte.weight", "h.0.attn.attention.q_proj.weight", infer_gpt_neo},
    Recognised{"transformer.", "wte.weight", "h.0.attn.q_proj.weight", infer_gptj},
    Recognised{"transformer.", "wte.weight", "blocks.0.attn.Wqkv.weight", infer_mpt},
    Recognised{"transformer.", "wte.weight", "wte.weight", infer_gpt2},
    Recognised{"transformer.", "word_embeddings.weight", "word_embeddings_layernorm.weight", infer_bloom},
    Recognised{"transformer.", "word_embeddings.weight", "h.0.self_attention.query_key_value.weight",
               infer_falcon},
    Recognised{"gpt_neox.", "embed_in.weight", "layers.0.attention.query_key_value.weight", infer_gpt_neox},
    Recognised{"model.decoder.", "embed_tokens.weight", "embed_positions.weight", infer_opt},
    Recognised{"decoder.", "embed_tokens.weight", "embed_positions.weight", infer_opt},
    Recognised{"bert.", "embeddings.word_embeddings.weight", "embeddings.token_type_embeddings.weight",
               infer_bert},
    Recognised{"", "shared.weight", "encoder.block.0.layer.0.SelfAttention.q.weight", infer_t5},
    Recognised{"backbone.", "embeddings.weight", "layers.0.mixer.A_log", infer_mamba},
};

}  // namespace

json infer_other_family(const CheckpointHeader& checkpoint) {
    for (const Recognised& family : families)
        for (const char* prefix : {family.prefix, ""}) {
            const CheckpointShapes shapes(checkpoint, prefix);
            if (shapes.has(family.table) && shapes.has(family.marker)) return family.infer(shapes);
        }
    return nullptr;
}

}  // namespace zeroplan
