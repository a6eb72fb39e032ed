#include "architectures/decoder.hpp"

namespace zeroplan {

ModelSpec build_gpt2(const DecoderConfig& config, const LoweringOptions& options) {
    const DecoderNames names{.embedding = "wte",
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
                             .attention_input_norm = "ln_1",
                             .mlp_input_norm = "ln_2",
                             .final_norm = "ln_f",
                             .transposed = true};
    return build_decoder(config, names, options);
}

}  // namespace zeroplan
