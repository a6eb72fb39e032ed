#include "import/config_llama_like.hpp"

#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

void read_gemma(const ConfigObject&, DecoderConfig& decoder) {
    decoder.scales_embedding = true;
}

/// Caps are on unless the file takes them away with a null.
bool caps(const ConfigObject& config, std::string_view key, bool usual) {
    return config.holder(key).value().contains(key) ? config.has(key) : usual;
}

void read_gemma2(const ConfigObject& config, DecoderConfig& decoder) {
    decoder.scales_embedding = true;
    decoder.norm_placement = NormPlacement::around;
    decoder.caps_scores = caps(config, "attn_logit_softcapping", true);
    decoder.caps_logits = caps(config, "final_logit_softcapping", true);
}

void read_gemma3(const ConfigObject& config, DecoderConfig& decoder) {
    decoder.scales_embedding = true;
    decoder.norm_placement = NormPlacement::around;
    decoder.caps_scores = caps(config, "attn_logit_softcapping", false);
    decoder.caps_logits = caps(config, "final_logit_softcapping", false);
}

void read_phi3(const ConfigObject&, DecoderConfig& decoder) {
    decoder.packed_gate_up = true;
}

void read_olmo2(const ConfigObject&, DecoderConfig& decoder) {
    decoder.norm_placement = NormPlacement::branches;
    decoder.whole_width_head_norms = true;
}

constexpr std::string_view cap_keys[] = {"attn_logit_softcapping", "final_logit_softcapping"};

// Defaults of transformers' configuration_<model_type>.py.
constexpr ConfigFamily families[] = {
    {.model_type = "gemma",
     .architecture = "GemmaForCausalLM",
     .mlp = "geglu",
     .reads_attention_bias = true,
     .tie_word_embeddings = true,
     .read_own = read_gemma},
    {.model_type = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .mlp = "geglu",
     .reads_attention_bias = true,
     .tie_word_embeddings = true,
     .names = "gemma2",
     .read_own = read_gemma2,
     .own_keys = cap_keys},
    {.model_type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .mlp = "geglu",
     .reads_attention_bias = true,
     .tie_word_embeddings = true,
     .query_key_norm = true,
     .names = "gemma2",
     .read_own = read_gemma3,
     .own_keys = cap_keys},
    {.model_type = "phi3", .architecture = "Phi3ForCausalLM", .names = "phi3", .read_own = read_phi3},
    {.model_type = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .reads_attention_bias = true,
     .query_key_norm = true,
     .names = "olmo2",
     .read_own = read_olmo2},
    {.model_type = "granite",
     .architecture = "GraniteForCausalLM",
     .reads_attention_bias = true,
     .reads_mlp_bias = true,
     .read_own = read_gemma},  // embedding_multiplier
    {.model_type = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .reads_attention_bias = true,
     .reads_mlp_bias = true,
     .tie_word_embeddings = true},
};

}  // namespace

std::span<const ConfigFamily> llama_like_families() {
    return families;
}

}  // namespace zeroplan
