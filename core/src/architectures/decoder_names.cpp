#include "architectures/decoder_names.hpp"

#include <array>
#include <string>
#include <utility>

#include "zeroplan/error.hpp"

namespace zeroplan {
namespace {

using P = LayerPart;

// Modules as transformers' modeling_<family>.py registers them.

DecoderNames llama() {
    return {.prefix = "model.",
            .embedding = "embed_tokens",
            .positions = "embed_positions",
            .layers = "layers",
            .query = "self_attn.q_proj",
            .key = "self_attn.k_proj",
            .value = "self_attn.v_proj",
            .packed_qkv = "self_attn.qkv_proj",
            .attention_output = "self_attn.o_proj",
            .query_norm = "self_attn.q_norm",
            .key_norm = "self_attn.k_norm",
            .gate = "mlp.gate_proj",
            .up = "mlp.up_proj",
            .down = "mlp.down_proj",
            .packed_gate_up = "mlp.gate_up_proj",
            .attention_norm = "input_layernorm",
            .mlp_norm = "post_attention_layernorm",
            .final_norm = "norm",
            .parts = {P::attention, P::mlp, P::attention_norm, P::mlp_norm},
            .fp32_softmax = true};
}

/// Gemma 2 and 3: a norm before and one behind each branch.
DecoderNames gemma2() {
    DecoderNames names = llama();
    names.attention_output_norm = "post_attention_layernorm";
    names.mlp_norm = "pre_feedforward_layernorm";
    names.mlp_output_norm = "post_feedforward_layernorm";
    names.parts = {P::attention,      P::mlp, P::attention_norm, P::attention_output_norm, P::mlp_norm,
                   P::mlp_output_norm};
    return names;
}

DecoderNames olmo2() {
    DecoderNames names = llama();
    names.attention_output_norm = "post_attention_layernorm";
    names.mlp_output_norm = "post_feedforward_layernorm";
    names.parts = {P::attention, P::mlp, P::attention_output_norm, P::mlp_output_norm};
    return names;
}

/// Its softmax runs in the dtype of the scores.
DecoderNames gpt_oss() {
    DecoderNames names = llama();
    names.router = "router";
    names.sinks = "self_attn.sinks";
    names.fp32_softmax = false;
    return names;
}

/// A norm before and one behind each branch; gate and up in one linear.
DecoderNames glm4() {
    DecoderNames names = llama();
    names.attention_output_norm = "post_self_attn_layernorm";
    names.mlp_output_norm = "post_mlp_layernorm";
    names.parts = {P::attention,      P::mlp, P::attention_norm, P::mlp_norm, P::attention_output_norm,
                   P::mlp_output_norm};
    return names;
}

DecoderNames glm4_moe() {
    DecoderNames names = llama();
    names.routed_experts_first = true;
    return names;
}

DecoderNames phimoe() {
    DecoderNames names = llama();
    names.router = "router";
    return names;
}

DecoderNames llama4() {
    DecoderNames names = llama();
    names.gate = "feed_forward.gate_proj";
    names.up = "feed_forward.up_proj";
    names.down = "feed_forward.down_proj";
    names.experts = "feed_forward.";
    names.router = "router";
    names.shared_experts = "shared_expert";
    names.routed_experts_first = names.tempers_queries = true;
    names.fp32_softmax = false;
    return names;
}

/// attn_temperature_tuning: false
DecoderNames llama4_untempered() {
    DecoderNames names = llama4();
    names.tempers_queries = false;
    return names;
}

DecoderNames phi() {
    DecoderNames names = llama();
    names.attention_output = "self_attn.dense";
    names.up = "mlp.fc1";
    names.down = "mlp.fc2";
    names.final_norm = "final_layernorm";
    return names;
}

DecoderNames phi3() {
    DecoderNames names = llama();
    names.packs_qkv = true;
    names.projections = {Projection::output, Projection::query, Projection::key, Projection::value};
    return names;
}

DecoderNames starcoder2() {
    DecoderNames names = llama();
    names.up = "mlp.c_fc";
    names.down = "mlp.c_proj";
    return names;
}

DecoderNames gpt2() {
    return {.prefix = "transformer.",
            .embedding = "wte",
            .positions = "wpe",
            .layers = "h",
            .query = "attn.q_proj",
            .key = "attn.k_proj",
            .value = "attn.v_proj",
            .packed_qkv = "attn.c_attn",
            .attention_output = "attn.c_proj",
            .query_norm = "attn.q_norm",
            .key_norm = "attn.k_norm",
            .gate = "mlp.c_gate",
            .up = "mlp.c_fc",
            .down = "mlp.c_proj",
            .attention_norm = "ln_1",
            .mlp_norm = "ln_2",
            .final_norm = "ln_f",
            .transposed = true,
            .packs_qkv = true};
}

DecoderNames gptj() {
    DecoderNames names = gpt2();
    names.attention_output = "attn.out_proj";
    names.up = "mlp.fc_in";
    names.down = "mlp.fc_out";
    names.projections = {Projection::key, Projection::value, Projection::query, Projection::output};
    names.fp32_softmax = true;
    names.transposed = names.packs_qkv = false;
    return names;
}

DecoderNames gpt_neo() {
    DecoderNames names = gpt2();
    names.query = "attn.attention.q_proj";
    names.key = "attn.attention.k_proj";
    names.value = "attn.attention.v_proj";
    names.attention_output = "attn.attention.out_proj";
    names.projections = {Projection::key, Projection::value, Projection::query, Projection::output};
    names.fp32_softmax = true;
    names.transposed = names.packs_qkv = false;
    return names;
}

/// transformers' class and llm-foundry's, which alone has learned positions.
DecoderNames mpt() {
    return {.prefix = "transformer.",
            .embedding = "wte",
            .positions = "wpe",
            .layers = "blocks",
            .packed_qkv = "attn.Wqkv",
            .attention_output = "attn.out_proj",
            .query_norm = "attn.q_ln",
            .key_norm = "attn.k_ln",
            .gate = "ffn.gate_proj",
            .up = "ffn.up_proj",
            .down = "ffn.down_proj",
            .attention_norm = "norm_1",
            .mlp_norm = "norm_2",
            .final_norm = "norm_f",
            .fp32_softmax = true,
            .packs_qkv = true};
}

DecoderNames bloom() {
    return {.prefix = "transformer.",
            .embedding = "word_embeddings",
            .positions = "position_embeddings",
            .embedding_norm = "word_embeddings_layernorm",
            .layers = "h",
            .packed_qkv = "self_attention.query_key_value",
            .attention_output = "self_attention.dense",
            .up = "mlp.dense_h_to_4h",
            .down = "mlp.dense_4h_to_h",
            .attention_norm = "input_layernorm",
            .mlp_norm = "post_attention_layernorm",
            .final_norm = "ln_f",
            .fp32_softmax = true,
            .packs_qkv = true};
}

DecoderNames falcon() {
    DecoderNames names = bloom();
    names.parts = {P::attention, P::mlp, P::attention_norm, P::mlp_norm};
    names.fp32_softmax = false;
    return names;
}

/// Falcon 40B: attention and MLP norm the input each for itself.
DecoderNames falcon_two_norms() {
    DecoderNames names = falcon();
    names.attention_norm = "ln_attn";
    names.mlp_norm = "ln_mlp";
    return names;
}

DecoderNames gpt_neox() {
    return {.prefix = "gpt_neox.",
            .embedding = "embed_in",
            .layers = "layers",
            .packed_qkv = "attention.query_key_value",
            .attention_output = "attention.dense",
            .up = "mlp.dense_h_to_4h",
            .down = "mlp.dense_4h_to_h",
            .attention_norm = "input_layernorm",
            .mlp_norm = "post_attention_layernorm",
            .final_norm = "final_layer_norm",
            .head = "embed_out",
            .parts = {P::attention_norm, P::mlp_norm, P::attention, P::mlp},
            .packs_qkv = true};
}

DecoderNames opt() {
    return {.prefix = "model.decoder.",
            .embedding = "embed_tokens",
            .positions = "embed_positions",
            .project_in = "project_in",
            .project_out = "project_out",
            .layers = "layers",
            .query = "self_attn.q_proj",
            .key = "self_attn.k_proj",
            .value = "self_attn.v_proj",
            .attention_output = "self_attn.out_proj",
            .up = "fc1",
            .down = "fc2",
            .attention_norm = "self_attn_layer_norm",
            .mlp_norm = "final_layer_norm",
            .final_norm = "final_layer_norm",
            .parts = {P::attention, P::attention_norm, P::mlp, P::mlp_norm},
            .projections = {Projection::key, Projection::value, Projection::query, Projection::output},
            .fp32_softmax = true,
            .final_norm_first = true};
}

}  // namespace

const DecoderNames& decoder_names(std::string_view family) {
    static const std::array<std::pair<std::string_view, DecoderNames>, 21> known{
        {{"llama", llama()},
         {"gpt2", gpt2()},
         {"gemma2", gemma2()},
         {"olmo2", olmo2()},
         {"gpt_oss", gpt_oss()},
         {"llama4", llama4()},
         {"llama4_untempered", llama4_untempered()},
         {"glm4", glm4()},
         {"glm4_moe", glm4_moe()},
         {"phimoe", phimoe()},
         {"phi", phi()},
         {"phi3", phi3()},
         {"starcoder2", starcoder2()},
         {"gptj", gptj()},
         {"gpt_neo", gpt_neo()},
         {"mpt", mpt()},
         {"bloom", bloom()},
         {"falcon", falcon()},
         {"falcon_two_norms", falcon_two_norms()},
         {"gpt_neox", gpt_neox()},
         {"opt", opt()}}};
    for (const auto& [name, names] : known)
        if (name == family) return names;
    throw Error(ErrorCode::not_supported, "no module names are known for the family " + std::string(family));
}

}  // namespace zeroplan
