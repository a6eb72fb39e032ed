#pragma once
#include "zeroplan/build_model.hpp"

namespace zeroplan {

/// A Llama by its sizes: every attention head has keys and values of its own, and its share of the width.
inline DecoderConfig llama_config(std::string name, std::uint64_t vocabulary, std::uint64_t hidden,
                                  std::uint64_t intermediate, std::uint64_t layers, std::uint64_t heads,
                                  std::uint64_t positions) {
    return {.name = std::move(name),
            .architecture = "LlamaForCausalLM",
            .parameter_prefix = "model.",
            .vocab_size = vocabulary,
            .hidden_size = hidden,
            .intermediate_size = intermediate,
            .num_hidden_layers = layers,
            .num_attention_heads = heads,
            .num_key_value_heads = heads,
            .head_dim = hidden / heads,
            .max_position_embeddings = positions,
            .mlp = "swiglu",
            .position_embedding = "rope",
            .normalization = "rmsnorm"};
}

inline DecoderConfig llama_2_7b_config() {
    return llama_config("llama-2-7b", 32000, 4096, 11008, 32, 32, 4096);
}

/// Three layers of hidden 64, with a key/value head to `queries_per_key` heads of 16.
inline DecoderConfig small_llama(bool tied = false, std::uint64_t queries_per_key = 2) {
    DecoderConfig config = llama_config("small", 320, 64, 160, 3, 4, 128);
    config.num_key_value_heads /= queries_per_key;
    config.tie_word_embeddings = tied;
    return config;
}

/// GPT-2 124M. `vocabulary`: llm.c pads it to 50304.
inline DecoderConfig gpt2_config(std::uint64_t vocabulary = 50257) {
    DecoderConfig config = llama_config("gpt2", vocabulary, 768, 3072, 12, 12, 1024);
    config.architecture = "GPT2LMHeadModel";
    config.parameter_prefix = "transformer.";
    config.mlp = "gelu";
    config.position_embedding = "learned";
    config.normalization = "layernorm";
    config.attention_bias = config.attention_output_bias = config.mlp_bias = true;
    config.tie_word_embeddings = config.fused_qkv = true;
    return config;
}

/// Falcon 7B: one key/value head, and query, key and value in one linear.
inline DecoderConfig falcon_7b_config() {
    DecoderConfig config = llama_config("falcon-7b", 65024, 4544, std::uint64_t{4} * 4544, 32, 71, 2048);
    config.architecture = "FalconForCausalLM";
    config.parameter_prefix = "transformer.";
    config.num_key_value_heads = 1;
    config.mlp = "gelu";
    config.normalization = "layernorm";
    config.fused_qkv = true;
    config.family = "falcon";
    return config;
}

}  // namespace zeroplan
