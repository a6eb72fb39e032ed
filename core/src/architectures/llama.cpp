#include "architectures/decoder.hpp"

namespace zeroplan {

ModelSpec build_llama(const DecoderConfig& config, const LoweringOptions& options) {
    const DecoderNames names{.embedding = "embed_tokens",
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
                             .attention_input_norm = "input_layernorm",
                             .mlp_input_norm = "post_attention_layernorm",
                             .final_norm = "norm",
                             .fp32_softmax = true,
                             .norms_last = true};
    return build_decoder(config, names, options);
}

}  // namespace zeroplan
