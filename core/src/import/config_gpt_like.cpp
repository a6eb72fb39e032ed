#include "import/config_gpt_like.hpp"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

using nlohmann::json;

constexpr std::uint64_t most_width = 1ULL << 24, most_positions = 1ULL << 30, most_heads = 1ULL << 16;

bool flag(const ConfigObject& config, std::string_view key, bool usual) {
    return config.boolean(key).value_or(usual);
}

void set_biases(DecoderConfig& decoder, bool biases) {
    decoder.attention_bias = decoder.attention_output_bias = decoder.mlp_bias = biases;
}

/// An object inside the configuration; nullopt if it isn't there.
std::optional<ConfigObject> part(const ConfigObject& config, std::string_view key) {
    const json* found = config.holder(key).find(key);
    if (found == nullptr) return std::nullopt;
    return ConfigObject(*config.holder(key).object(key));
}

// --- MPT, as transformers' class and llm-foundry's, which has more options. source: MptConfig;
// llmfoundry/models/mpt/configuration_mpt.py

void read_mpt_attention(const ConfigObject& attention, DecoderConfig& decoder) {
    if (flag(attention, "rope", false)) decoder.position_embedding = "rope";
    if (flag(attention, "qk_ln", false))
        attention.fail({"qk_ln"}, "MPT's norms of query and key are not modelled", "set qk_ln to false",
                       ErrorCode::not_supported);
    const auto shared = attention.size({"kv_n_heads"}, most_heads);
    const std::string type = attention.string({"attn_type"}).value_or("multihead_attention");
    decoder.num_key_value_heads = type == "multiquery_attention" ? 1
                                  : shared                       ? *shared
                                                                 : decoder.num_attention_heads;
}

void read_mpt(const ConfigObject& config, DecoderConfig& decoder) {
    const double ratio = config.holder("expansion_ratio").number("expansion_ratio").value_or(4);
    const double width = ratio * static_cast<double>(decoder.hidden_size);
    if (!(width >= 1 && width <= static_cast<double>(most_width)) || width != std::floor(width))
        config.fail({"expansion_ratio"},
                    fmt::format("expansion_ratio {} times hidden size {} is no width of an MLP", ratio,
                                decoder.hidden_size),
                    "give a ratio whose product with d_model is a whole number");
    decoder.intermediate_size = static_cast<std::uint64_t>(width);
    decoder.max_position_embeddings = config.size({"max_seq_len"}, most_positions).value_or(2048);

    const std::optional<ConfigObject> attention = part(config, "attn_config");
    const bool alibi = attention ? flag(*attention, "alibi", true) : true;
    if (!config.has("position_embedding"))
        decoder.position_embedding = alibi                                   ? "alibi"
                                     : flag(config, "learned_pos_emb", true) ? "learned"
                                                                             : "none";
    if (attention) read_mpt_attention(*attention, decoder);
    if (decoder.position_embedding == "learned") decoder.architecture = "MPTForCausalLM";  // llm-foundry's
    if (const auto mlp = part(config, "ffn_config");
        mlp && mlp->string({"ffn_type"}).value_or("") == "mptglu")
        decoder.mlp = "geglu";
    const bool biases = !flag(config, "no_bias", true);
    if (!config.has("linear_bias")) set_biases(decoder, biases);
    decoder.norm_bias = biases;
}

constexpr std::string_view mpt_keys[] = {"expansion_ratio", "max_seq_len",     "attn_config",
                                         "ffn_config",      "learned_pos_emb", "no_bias"};

void read_bloom(const ConfigObject& config, DecoderConfig& decoder) {
    decoder.embedding_norm = true;
    decoder.residual_from_norm = flag(config, "apply_residual_connection_post_layernorm", false);
    if (const auto length = config.size({"seq_length"}, most_positions))
        decoder.max_position_embeddings = *length;
}

constexpr std::string_view bloom_keys[] = {"seq_length", "apply_residual_connection_post_layernorm"};

/// Three generations: Falcon-RW (sequential, ALiBi), 7B (one key/value head, one norm), 40B and 180B (grouped
/// keys and values, two norms) and 11B (the same with one norm). source: modeling_falcon.py
void read_falcon(const ConfigObject& config, DecoderConfig& decoder) {
    const bool is_new = flag(config, "new_decoder_architecture", false);
    const bool parallel = is_new || flag(config, "parallel_attn", true);
    const std::uint64_t heads = decoder.num_attention_heads;
    if (is_new)
        decoder.num_key_value_heads =
            config.size({"num_kv_heads", "num_key_value_heads"}, most_heads).value_or(heads);
    else
        decoder.num_key_value_heads = flag(config, "multi_query", true) ? 1 : heads;
    if (heads % decoder.num_key_value_heads != 0)
        config.fail({"num_kv_heads"},
                    fmt::format("{} attention heads do not divide into {} key/value heads", heads,
                                decoder.num_key_value_heads),
                    "num_kv_heads has to divide num_attention_heads");
    if (!config.has("position_embedding") && flag(config, "alibi", false))
        decoder.position_embedding = "alibi";
    if (!config.has("linear_bias")) set_biases(decoder, flag(config, "bias", false));
    const std::uint64_t norms = config.size({"num_ln_in_parallel_attn"}, 2).value_or(is_new ? 2 : 1);
    if (!parallel) return;
    decoder.branch_order =
        is_new && norms == 2 ? BranchOrder::parallel_two_norms : BranchOrder::parallel_one_norm;
    if (is_new && norms == 2) decoder.family = "falcon_two_norms";
}

constexpr std::string_view falcon_keys[] = {
    "new_decoder_architecture", "parallel_attn", "num_kv_heads", "multi_query", "alibi", "bias",
    "num_ln_in_parallel_attn"};

void read_gpt_neox(const ConfigObject& config, DecoderConfig& decoder) {
    if (flag(config, "use_parallel_residual", true)) decoder.branch_order = BranchOrder::parallel_two_norms;
    if (!config.has("linear_bias"))
        decoder.attention_bias = decoder.attention_output_bias = flag(config, "attention_bias", true);
}

constexpr std::string_view gpt_neox_keys[] = {"use_parallel_residual"};

void read_gptj(const ConfigObject&, DecoderConfig& decoder) {
    decoder.branch_order = BranchOrder::parallel_one_norm;
    decoder.lm_head_bias = true;
}

void read_phi(const ConfigObject& config, DecoderConfig& decoder) {
    decoder.branch_order = BranchOrder::parallel_one_norm;
    decoder.lm_head_bias = true;
    decoder.query_key_norm = flag(config, "qk_layernorm", false);
}

constexpr std::string_view phi_keys[] = {"qk_layernorm"};

void read_opt(const ConfigObject& config, DecoderConfig& decoder) {
    if (!flag(config, "do_layer_norm_before", true)) decoder.norm_placement = NormPlacement::after;
    decoder.final_norm =
        decoder.norm_placement == NormPlacement::before && !flag(config, "_remove_final_layer_norm", false);
    if (!config.has("linear_bias")) set_biases(decoder, flag(config, "enable_bias", true));
    decoder.extra_positions = 2;  // OPTLearnedPositionalEmbedding.offset
    const std::uint64_t width =
        config.size({"word_embed_proj_dim"}, most_width).value_or(decoder.hidden_size);
    decoder.embedding_width = width == decoder.hidden_size ? 0 : width;
}

constexpr std::string_view opt_keys[] = {"do_layer_norm_before", "_remove_final_layer_norm", "enable_bias",
                                         "word_embed_proj_dim"};

void read_starcoder2(const ConfigObject& config, DecoderConfig& decoder) {
    if (!config.has("linear_bias")) set_biases(decoder, flag(config, "use_bias", true));
}

constexpr std::string_view starcoder2_keys[] = {"use_bias"};

void read_stablelm(const ConfigObject& config, DecoderConfig& decoder) {
    decoder.attention_bias = flag(config, "use_qkv_bias", false);
    if (flag(config, "use_parallel_residual", false)) decoder.branch_order = BranchOrder::parallel_one_norm;
    if (flag(config, "qk_layernorm", false))
        config.fail({"qk_layernorm"}, "stablelm's norms of single heads are not modelled",
                    "set qk_layernorm to false, or give the checkpoint's .safetensors file",
                    ErrorCode::not_supported);
}

constexpr std::string_view stablelm_keys[] = {"use_qkv_bias", "use_parallel_residual", "qk_layernorm"};

// Defaults of transformers' configuration_<model_type>.py.
constexpr ConfigFamily families[] = {
    {.model_type = "mpt",
     .architecture = "MptForCausalLM",
     .mlp = "gelu",
     .position_embedding = "alibi",
     .normalization = "layernorm",
     .tie_word_embeddings = true,
     .names = "mpt",
     .read_own = read_mpt,
     .own_keys = mpt_keys},
    {.model_type = "bloom",
     .architecture = "BloomForCausalLM",
     .mlp = "gelu",
     .position_embedding = "alibi",
     .normalization = "layernorm",
     .biases = every_bias,
     .tie_word_embeddings = true,
     .names = "bloom",
     .read_own = read_bloom,
     .own_keys = bloom_keys},
    {.model_type = "falcon",
     .architecture = "FalconForCausalLM",
     .mlp = "gelu",
     .normalization = "layernorm",
     .tie_word_embeddings = true,
     .names = "falcon",
     .read_own = read_falcon,
     .own_keys = falcon_keys},
    {.model_type = "gpt_neox",
     .architecture = "GPTNeoXForCausalLM",
     .mlp = "gelu",
     .normalization = "layernorm",
     .biases = every_bias,
     .names = "gpt_neox",
     .read_own = read_gpt_neox,
     .own_keys = gpt_neox_keys},
    {.model_type = "gptj",
     .architecture = "GPTJForCausalLM",
     .mlp = "gelu",
     .normalization = "layernorm",
     .biases = {.mlp = true},
     .names = "gptj",
     .activation = "gelu_new",
     .read_own = read_gptj},
    {.model_type = "gpt_neo",
     .architecture = "GPTNeoForCausalLM",
     .mlp = "gelu",
     .position_embedding = "learned",
     .normalization = "layernorm",
     .biases = {.output = true, .mlp = true},
     .tie_word_embeddings = true,
     .names = "gpt_neo",
     .activation = "gelu_new"},
    {.model_type = "opt",
     .architecture = "OPTForCausalLM",
     .mlp = "relu",
     .position_embedding = "learned",
     .normalization = "layernorm",
     .tie_word_embeddings = true,
     .names = "opt",
     .read_own = read_opt,
     .own_keys = opt_keys},
    {.model_type = "phi",
     .architecture = "PhiForCausalLM",
     .mlp = "gelu",
     .normalization = "layernorm",
     .biases = every_bias,
     .names = "phi",
     .activation = "gelu_new",
     .read_own = read_phi,
     .own_keys = phi_keys},
    {.model_type = "starcoder2",
     .architecture = "Starcoder2ForCausalLM",
     .mlp = "gelu",
     .normalization = "layernorm",
     .tie_word_embeddings = true,
     .names = "starcoder2",
     .read_own = read_starcoder2,
     .own_keys = starcoder2_keys},
    {.model_type = "stablelm",
     .architecture = "StableLmForCausalLM",
     .normalization = "layernorm",
     .read_own = read_stablelm,
     .own_keys = stablelm_keys},
};

}  // namespace

std::span<const ConfigFamily> gpt_like_families() {
    return families;
}

}  // namespace zeroplan
