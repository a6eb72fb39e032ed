#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "import/config_object.hpp"
#include "zeroplan/build_model.hpp"

namespace zeroplan {

/// How a family's configuration says which layers have experts, and how many.
enum class ExpertFamily : std::uint8_t {
    none,
    mixtral,  ///< num_local_experts of intermediate_size, in every layer
    qwen2,    ///< num_experts of moe_intermediate_size, one gated shared expert, every decoder_sparse_step-th
    qwen3,    ///< the same without shared expert
    deepseek  ///< n_routed_experts and n_shared_experts of moe_intermediate_size behind first_k_dense_replace
};

/// One `model_type` and what its configuration class in transformers takes for absent keys; 0 means that
/// there is no default: the key has to be given, or follows from others (key/value heads = heads, head_dim =
/// hidden / heads, intermediate = 4 · hidden).
struct ConfigFamily {
    std::string_view model_type, architecture;
    std::uint64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads,
        num_key_value_heads, head_dim, max_position_embeddings;
    std::string_view mlp, position_embedding, normalization;
    bool query_key_value_bias = false, output_bias = false, mlp_bias = false;
    bool reads_attention_bias = false, reads_mlp_bias = false;  ///< from keys attention_bias and mlp_bias
    bool tie_word_embeddings = false, query_key_norm = false;
    std::string_view names = "llama";  ///< whose module names (decoder_names)
    ExpertFamily experts = ExpertFamily::none;
    bool latent_attention = false;
    std::string_view activation{};  ///< taken for an absent hidden_act, where it is written in Python
    /// Reads the family's own keys, which are `own_keys`, once the usual ones are read.
    void (*read_own)(const ConfigObject&, DecoderConfig&) = nullptr;
    std::span<const std::string_view> own_keys{};
};

/// Families that are built.
std::span<const ConfigFamily> config_families();
const ConfigFamily* find_config_family(std::string_view model_type);
/// The family whose class `architecture` is, "LlamaForCausalLM".
const ConfigFamily* find_family_of_class(std::string_view architecture);

/// Families that exist, but that this version does not build.
std::span<const std::string_view> unsupported_model_types();

}  // namespace zeroplan
