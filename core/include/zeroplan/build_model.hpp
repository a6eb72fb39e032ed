#pragma once
#include <string>

#include "zeroplan/model_spec.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// How a model's modules become operators: which kernels run them. Parameters don't depend on it.
struct LoweringOptions {
    AttentionKernel attention = AttentionKernel::flash;
    LossKernel loss = LossKernel::eager;
    Kernels kernels = Kernels::fused;
    bool dropout = false;
};

/// A transformer decoder's sizes, as read from a config.json with all defaults of its model_type filled in.
struct DecoderConfig {
    std::string name, architecture;  ///< e.g. "llama-3-8b", "LlamaForCausalLM"
    std::string parameter_prefix;    ///< "model." or "transformer."
    std::uint64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, num_hidden_layers = 0;
    std::uint64_t num_attention_heads = 0, num_key_value_heads = 0, head_dim = 0;
    std::uint64_t max_position_embeddings = 0;
    std::string mlp;                 ///< swiglu geglu gelu relu squared_relu
    std::string position_embedding;  ///< rope learned alibi none
    std::string normalization;       ///< rmsnorm layernorm
    bool attention_bias = false;     ///< on q, k, v
    bool attention_output_bias = false;
    bool mlp_bias = false;
    bool query_key_norm = false;  ///< a norm over each head of q and k (qwen3)
    bool tie_word_embeddings = false;
    bool fused_qkv = false;  ///< gpt2's c_attn: one linear of 3·hidden
};

/// A decoder with the Llama family's module names (llama, mistral, qwen2, …): model.layers.N.self_attn.q_proj
/// ….
ModelSpec build_llama(const DecoderConfig& config, const LoweringOptions& options);
/// A decoder with the GPT-2 family's module names: transformer.h.N.attn.c_attn ….
ModelSpec build_gpt2(const DecoderConfig& config, const LoweringOptions& options);

/// One layer of a plain stack.
struct StackLayer {
    std::uint64_t in = 0, out = 0;
    bool bias = true;
    ActivationFunction activation = ActivationFunction::none;
};
/// Linears one after the other and a loss: "mse" against the input (out of the last = in of the first) or
/// "cross_entropy".
ModelSpec build_plain_stack(const std::string& name, const std::vector<StackLayer>& layers,
                            const std::string& loss);

}  // namespace zeroplan
