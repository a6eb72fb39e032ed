#include "import/config_moe.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "import/config_unrotated.hpp"

namespace zeroplan {
namespace {

/// Every second layer attends to a window of 128 tokens unless the file says otherwise.
void read_gpt_oss(const ConfigObject& config, DecoderConfig& decoder) {
    constexpr std::uint64_t window = 128;
    decoder.attention_sinks = true;
    decoder.attention_bias = decoder.attention_output_bias = config.boolean("attention_bias").value_or(true);
    if (!config.holder("sliding_window").value().contains("sliding_window")) decoder.sliding_window = window;
}

/// moe_layers overrides the step, which alone says it here.
void check_moe_layers(const ConfigObject& config, const DecoderConfig& decoder) {
    const auto given = config.holder("moe_layers").integers("moe_layers");
    if (!given) return;
    std::vector<std::uint64_t> placed;
    for (std::uint64_t i = 0; i < decoder.num_hidden_layers; ++i)
        if (decoder.experts->has_experts(i)) placed.push_back(i);
    if (*given != placed)
        config.fail({"moe_layers"},
                    "experts in layers that no interleave_moe_layer_step names are not modelled",
                    "leave moe_layers out, or give every k-th layer and interleave_moe_layer_step k",
                    ErrorCode::not_supported);
}

void read_llama4(const ConfigObject& config, DecoderConfig& decoder) {
    constexpr std::uint64_t most = 1ULL << 24;
    decoder.intermediate_size = config.size({"intermediate_size_mlp"}, most).value_or(16384);
    decoder.query_key_norm = config.boolean("use_qk_norm").value_or(true);
    decoder.head_norm_weight = false;
    decoder.head_norms_after_rope = true;
    read_unrotated_layers(config, decoder);
    // Llama4TextAttention scales queries of layers without rope by their positions.
    if (!config.boolean("attn_temperature_tuning").value_or(true)) decoder.family = "llama4_untempered";
    check_moe_layers(config, decoder);
    const bool chunks = config.holder("attention_chunk_size").value().contains("attention_chunk_size");
    decoder.sliding_window = config.size({"attention_chunk_size"}, most).value_or(chunks ? 0 : 8192);
}

/// Biases are those of query, key and value alone.
void read_glm4_moe(const ConfigObject& config, DecoderConfig& decoder) {
    decoder.attention_bias = config.boolean("attention_bias").value_or(false);
    decoder.query_key_norm = config.boolean("use_qk_norm").value_or(false);
}

void read_olmoe(const ConfigObject& config, DecoderConfig& decoder) {
    decoder.whole_width_head_norms = true;
    decoder.clips_qkv = config.has("clip_qkv");
}

void read_phimoe(const ConfigObject& config, DecoderConfig& decoder) {
    decoder.lm_head_bias = config.boolean("lm_head_bias").value_or(false);
}

constexpr std::string_view glm4_moe_keys[] = {"use_qk_norm"};
constexpr std::string_view olmoe_keys[] = {"clip_qkv"};
constexpr std::string_view phimoe_keys[] = {"lm_head_bias"};
constexpr std::string_view llama4_keys[] = {
    "intermediate_size_mlp", "interleave_moe_layer_step", "moe_layers",           "use_qk_norm",
    "no_rope_layers",        "no_rope_layer_interval",    "attention_chunk_size", "attn_temperature_tuning"};

// Defaults of transformers' configuration_<model_type>.py.
constexpr ConfigFamily families[] = {
    {.model_type = "gpt_oss",
     .architecture = "GptOssForCausalLM",
     .names = "gpt_oss",
     .experts = ExpertFamily::gpt_oss,
     .read_own = read_gpt_oss},
    {.model_type = "glm4_moe",
     .architecture = "Glm4MoeForCausalLM",
     .names = "glm4_moe",
     .experts = ExpertFamily::deepseek,
     .read_own = read_glm4_moe,
     .own_keys = glm4_moe_keys},
    {.model_type = "olmoe",
     .architecture = "OlmoeForCausalLM",
     .reads_attention_bias = true,
     .query_key_norm = true,
     .experts = ExpertFamily::olmoe,
     .read_own = read_olmoe,
     .own_keys = olmoe_keys},
    {.model_type = "phimoe",
     .architecture = "PhimoeForCausalLM",
     .normalization = "layernorm",
     .reads_attention_bias = true,
     .names = "phimoe",
     .experts = ExpertFamily::mixtral,
     .read_own = read_phimoe,
     .own_keys = phimoe_keys,
     .note = "the noise that its class may add to its experts' input while training (input_jitter_noise: two "
             "tensors as wide as the model a layer) is not planned"},
    {.model_type = "llama4_text",
     .architecture = "Llama4ForCausalLM",
     .reads_attention_bias = true,
     .names = "llama4",
     .experts = ExpertFamily::llama4,
     .read_own = read_llama4,
     .own_keys = llama4_keys,
     .note = "each token goes through its own experts alone, as trainers with grouped products compute it; "
             "transformers' class puts every token through every expert, which takes more time and memory"},
};

}  // namespace

std::span<const ConfigFamily> moe_families() {
    return families;
}

}  // namespace zeroplan
