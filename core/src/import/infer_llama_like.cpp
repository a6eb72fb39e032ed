#include <nlohmann/json.hpp>

#include "import/infer_families.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

const std::string layer = "layers.0.";

/// What every member of the family tells: sizes of the table and of queries, keys and values.
json base(const CheckpointShapes& shapes, const char* model_type) {
    return {{"model_type", model_type},
            {"vocab_size", shapes.size("embed_tokens.weight", 0)},
            {"hidden_size", shapes.size("embed_tokens.weight", 1)},
            {"num_hidden_layers", shapes.layers("layers")},
            {"max_position_embeddings", 4096},
            {"tie_word_embeddings", !shapes.has_output_layer()},
            {"notes", {"the checkpoint does not say how long sequences may be: 4096 tokens are assumed"}}};
}

std::uint64_t hidden_of(const json& config) {
    return config.at("hidden_size").get<std::uint64_t>();
}

void note_routing(json& config, std::uint64_t usual) {
    const json& count = config.at(config.contains("num_experts") ? "num_experts" : "num_local_experts");
    const std::uint64_t per_token = std::min(usual, count.get<std::uint64_t>());
    config["num_experts_per_tok"] = per_token;
    config["notes"].push_back(fmt::format(
        "the checkpoint does not say to how many experts a token goes: {} are assumed", per_token));
}

/// Gemma 2 and 3 norm each branch on both sides; Olmo 2 behind it only, over the whole width.
bool norms_behind(const CheckpointShapes& shapes) {
    return shapes.has(layer + "post_feedforward_layernorm.weight");
}

/// Of all heads of queries at once, of which there are more than one.
bool norms_whole_width(const CheckpointShapes& shapes) {
    return shapes.size(layer + "self_attn.q_norm.weight", 0, 1) ==
           shapes.size(layer + "self_attn.q_proj.weight", 0);
}

const char* plain_type(const CheckpointShapes& shapes, bool has_norms) {
    if (shapes.has(layer + "post_self_attn_layernorm.weight")) return "glm4";
    if (!shapes.has(layer + "input_layernorm.weight") && !norms_behind(shapes)) return "olmo";
    if (norms_behind(shapes)) {
        if (!shapes.has(layer + "pre_feedforward_layernorm.weight")) return "olmo2";
        return has_norms ? "gemma3_text" : "gemma2";
    }
    if (shapes.has(layer + "mlp.experts.down_proj")) {
        if (shapes.has(layer + "mlp.shared_expert.up_proj.weight")) return "qwen2_moe";
        return !has_norms ? "mixtral" : norms_whole_width(shapes) ? "olmoe" : "qwen3_moe";
    }
    if (has_norms) return "qwen3";
    const bool bias = shapes.has(layer + "self_attn.q_proj.bias");
    return bias && !shapes.has(layer + "self_attn.o_proj.bias") ? "qwen2" : "llama";
}

/// Experts are fused by now (fused_experts.hpp).
void add_mlp(json& config, const CheckpointShapes& shapes) {
    if (config.at("model_type") == "glm4") {
        config["intermediate_size"] = shapes.size(layer + "mlp.down_proj.weight", 1);
        return;
    }
    const std::string experts = layer + "mlp.experts.down_proj",
                      shared = layer + "mlp.shared_expert.up_proj.weight";
    if (!shapes.has(experts)) {
        config["intermediate_size"] = shapes.size(layer + "mlp.up_proj.weight", 0);
        return;
    }
    const bool mixtral = config.at("model_type") == "mixtral";
    config[mixtral ? "num_local_experts" : "num_experts"] = shapes.size(experts, 0, 3);
    config["intermediate_size"] = shapes.size(experts, 2, 3);
    if (!mixtral) config["moe_intermediate_size"] = config["intermediate_size"];
    if (shapes.has(shared)) config["shared_expert_intermediate_size"] = shapes.size(shared, 0);
    note_routing(config, mixtral ? 2 : shapes.has(shared) ? 4 : 8);
}

json infer_plain(const CheckpointShapes& shapes) {
    const std::uint64_t query = shapes.size(layer + "self_attn.q_proj.weight", 0),
                        key_value = shapes.size(layer + "self_attn.k_proj.weight", 0);
    const bool has_norms = shapes.has(layer + "self_attn.q_norm.weight");
    const std::string type = plain_type(shapes, has_norms);
    json config = base(shapes, type.c_str());
    std::uint64_t head_dim = assumed_head_dim(hidden_of(config), query, key_value);
    if (type == "gemma2" && query % 256 == 0 && key_value % 256 == 0) head_dim = 256;  // of 2B and 9B
    if (has_norms && type != "olmo2" && type != "olmoe") {
        head_dim = shapes.size(layer + "self_attn.q_norm.weight", 0, 1);
        config["num_attention_heads"] = query / head_dim;
        config["num_key_value_heads"] = key_value / head_dim;
    } else {
        assume_heads(config, head_dim, query, key_value);
    }
    config["head_dim"] = head_dim;
    config["attention_bias"] = shapes.has(layer + "self_attn.q_proj.bias");
    config["mlp_bias"] = shapes.has(layer + "mlp.up_proj.bias");
    add_mlp(config, shapes);
    return config;
}

/// gpt-oss: its sinks tell; the experts' biases give their sizes, whether the weights are stored in bf16 or
/// as blocks of MXFP4.
json infer_gpt_oss(const CheckpointShapes& shapes) {
    json config = base(shapes, "gpt_oss");
    const std::uint64_t query = shapes.size(layer + "self_attn.q_proj.weight", 0),
                        key_value = shapes.size(layer + "self_attn.k_proj.weight", 0);
    const std::uint64_t heads = shapes.size(layer + "self_attn.sinks", 0, 1);
    config["num_attention_heads"] = heads;
    config["head_dim"] = query / heads;
    config["num_key_value_heads"] = key_value / std::max<std::uint64_t>(query / heads, 1);
    config["attention_bias"] = shapes.has(layer + "self_attn.q_proj.bias");
    const std::string experts = layer + "mlp.experts.gate_up_proj_bias";
    config["num_local_experts"] = shapes.size(experts, 0);
    config["intermediate_size"] = shapes.size(experts, 1) / 2;
    note_routing(config, 4);
    return config;
}

/// Query, key and value in one product, gate and up in another.
json infer_phi3(const CheckpointShapes& shapes) {
    json config = base(shapes, "phi3");
    const std::uint64_t query = shapes.size(layer + "self_attn.o_proj.weight", 1),
                        rows = shapes.size(layer + "self_attn.qkv_proj.weight", 0);
    const std::uint64_t key_value = rows > query ? (rows - query) / 2 : query;
    config["intermediate_size"] = shapes.size(layer + "mlp.down_proj.weight", 1);
    assume_heads(config, assumed_head_dim(hidden_of(config), query, key_value), query, key_value);
    return config;
}

json infer_phi(const CheckpointShapes& shapes) {
    json config = base(shapes, "phi");
    const std::uint64_t hidden = hidden_of(config);
    const std::uint64_t key_value = shapes.size(layer + "self_attn.k_proj.weight", 0);
    config["intermediate_size"] = shapes.size(layer + "mlp.fc1.weight", 0);
    config["qk_layernorm"] = shapes.has(layer + "self_attn.q_layernorm.weight");
    assume_heads(config, assumed_head_dim(hidden, hidden, key_value), hidden, key_value);
    return config;
}

json infer_starcoder2(const CheckpointShapes& shapes) {
    json config = base(shapes, "starcoder2");
    const std::uint64_t query = shapes.size(layer + "self_attn.q_proj.weight", 0),
                        key_value = shapes.size(layer + "self_attn.k_proj.weight", 0);
    config["intermediate_size"] = shapes.size(layer + "mlp.c_fc.weight", 0);
    config["use_bias"] = shapes.has(layer + "mlp.c_fc.bias");
    assume_heads(config, assumed_head_dim(hidden_of(config), query, key_value), query, key_value);
    return config;
}

}  // namespace

json infer_llama_like(const CheckpointShapes& shapes) {
    if (shapes.has(layer + "self_attn.kv_a_proj_with_mqa.weight"))
        throw Error(ErrorCode::not_supported,
                    "the checkpoint has DeepSeek's latent attention, whose shapes do not tell how many heads "
                    "there are nor how many experts a token goes to",
                    "put the model's config.json beside it", {shapes.file(), ""});
    if (shapes.has(layer + "input_layernorm.weight") && shapes.has(layer + "mlp.gate_proj.weight") &&
        !shapes.has(layer + "post_attention_layernorm.weight"))
        throw Error(
            ErrorCode::not_supported,
            "the checkpoint has one norm a layer, as Cohere's and Cohere 2's have: its shapes do not tell "
            "them apart",
            "put the model's config.json beside it", {shapes.file(), ""});
    if (shapes.has(layer + "self_attn.sinks")) return infer_gpt_oss(shapes);
    if (shapes.has(layer + "self_attn.qkv_proj.weight")) return infer_phi3(shapes);
    if (shapes.has(layer + "self_attn.dense.weight")) return infer_phi(shapes);
    if (shapes.has(layer + "mlp.c_fc.weight")) return infer_starcoder2(shapes);
    return infer_plain(shapes);
}

}  // namespace zeroplan
