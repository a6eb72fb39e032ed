#include "import/config_llama_like.hpp"

#include <nlohmann/json.hpp>

#include "import/config_unrotated.hpp"

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

/// LayerNorm without parameters; queries, keys and values are clamped where the file says how far.
void read_olmo(const ConfigObject& config, DecoderConfig& decoder) {
    decoder.norm_weight = false;
    decoder.clips_qkv = config.has("clip_qkv");
}

void read_glm4(const ConfigObject& config, DecoderConfig& decoder) {
    decoder.norm_placement = NormPlacement::around;
    decoder.packed_gate_up = true;
    decoder.attention_bias = config.boolean("attention_bias").value_or(true);
}

void read_cohere(const ConfigObject& config, DecoderConfig& decoder) {
    decoder.branch_order = BranchOrder::parallel_one_norm;
    decoder.norm_bias = false;
    decoder.scales_logits = true;
    decoder.query_key_norm = decoder.head_norm_rows = config.boolean("use_qk_norm").value_or(false);
}

/// Which layers attend to everything, and so have no rotary embedding: by name, or every
/// sliding_window_pattern-th.
std::vector<std::uint64_t> full_attention_layers(const ConfigObject& config, std::uint64_t layers) {
    const nlohmann::json* types = config.holder("layer_types").find("layer_types");
    if (types != nullptr && (!types->is_array() || types->size() < layers))
        config.fail({"layer_types"}, "layer_types is no list with a word for every layer",
                    "give one of sliding_attention and full_attention for each");
    const std::uint64_t pattern = config.size({"sliding_window_pattern"}, 10'000).value_or(4);
    std::vector<std::uint64_t> full;
    for (std::uint64_t i = 0; i < layers; ++i)
        if (types != nullptr ? (*types)[i] == "full_attention" : (i + 1) % pattern == 0) full.push_back(i);
    return full;
}

void read_cohere2(const ConfigObject& config, DecoderConfig& decoder) {
    read_cohere(config, decoder);
    decoder.query_key_norm = decoder.head_norm_rows = false;
    decoder.head_dim = decoder.hidden_size / decoder.num_attention_heads;
    const bool says = config.holder("sliding_window").value().contains("sliding_window");
    if (!says) decoder.sliding_window = 4096;
    // Without a window no layer has one, and no layer rotates.
    if (decoder.sliding_window == 0)
        decoder.position_embedding = "none";
    else
        decoder.layers_without_rope = full_attention_layers(config, decoder.num_hidden_layers);
}

/// embedding_multiplier, and logits are divided by logits_scaling, by 1 too. source:
/// GraniteForCausalLM.forward
void read_granite(const ConfigObject&, DecoderConfig& decoder) {
    decoder.scales_embedding = true;
    decoder.scales_logits = true;
}

constexpr std::string_view granite_keys[] = {"logits_scaling"};
constexpr std::string_view smollm3_keys[] = {"no_rope_layers", "no_rope_layer_interval"};
constexpr std::string_view clip_keys[] = {"clip_qkv"};
constexpr std::string_view cohere_keys[] = {"use_qk_norm", "logit_scale"};
constexpr std::string_view cohere2_keys[] = {"layer_types", "sliding_window_pattern", "logit_scale"};
constexpr std::string_view cohere_note =
    "its LayerNorm is planned as one kernel; transformers' class writes it out in fp32, which keeps more "
    "where "
    "it is not compiled";
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
    {.model_type = "olmo",
     .architecture = "OlmoForCausalLM",
     .normalization = "layernorm",
     .reads_attention_bias = true,
     .read_own = read_olmo,
     .own_keys = clip_keys},
    {.model_type = "glm4", .architecture = "Glm4ForCausalLM", .names = "glm4", .read_own = read_glm4},
    {.model_type = "cohere",
     .architecture = "CohereForCausalLM",
     .normalization = "layernorm",
     .reads_attention_bias = true,
     .tie_word_embeddings = true,
     .read_own = read_cohere,
     .own_keys = cohere_keys,
     .note = cohere_note},
    {.model_type = "cohere2",
     .architecture = "Cohere2ForCausalLM",
     .normalization = "layernorm",
     .reads_attention_bias = true,
     .tie_word_embeddings = true,
     .read_own = read_cohere2,
     .own_keys = cohere2_keys,
     .note = cohere_note},
    {.model_type = "granite",
     .architecture = "GraniteForCausalLM",
     .reads_attention_bias = true,
     .reads_mlp_bias = true,
     .read_own = read_granite,
     .own_keys = granite_keys},
    {.model_type = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .reads_attention_bias = true,
     .reads_mlp_bias = true,
     .tie_word_embeddings = true,
     .read_own = read_unrotated_layers,
     .own_keys = smollm3_keys},
};

}  // namespace

std::span<const ConfigFamily> llama_like_families() {
    return families;
}

}  // namespace zeroplan
