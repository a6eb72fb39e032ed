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
    olmoe,    ///< num_experts of intermediate_size, in every layer
    deepseek,  ///< n_routed_experts and n_shared_experts of moe_intermediate_size behind
               ///< first_k_dense_replace
    gpt_oss,   ///< num_local_experts of intermediate_size with biases, in every layer
    llama4  ///< num_local_experts and a shared one of intermediate_size, every interleave_moe_layer_step-th
};

/// Which linear layers of a transformer layer have a bias.
struct FamilyBiases {
    bool query_key_value = false, output = false, mlp = false;
};
inline constexpr FamilyBiases every_bias{.query_key_value = true, .output = true, .mlp = true};

/// One `model_type`: what its configuration class takes for absent keys, where that differs from a Llama's.
/// Its sizes are those of family_sizes().
struct ConfigFamily {
    std::string_view model_type, architecture;
    std::string_view mlp = "swiglu", position_embedding = "rope", normalization = "rmsnorm";
    FamilyBiases biases{};
    bool reads_attention_bias = false, reads_mlp_bias = false;  ///< from keys attention_bias and mlp_bias
    bool tie_word_embeddings = false, query_key_norm = false;
    std::string_view names = "llama";  ///< whose module names (decoder_names)
    ExpertFamily experts = ExpertFamily::none;
    bool latent_attention = false;
    std::string_view activation{};  ///< taken for an absent hidden_act, where it is written in Python
    /// Reads the family's own keys, which are `own_keys`, once the usual ones are read.
    void (*read_own)(const ConfigObject&, DecoderConfig&) = nullptr;
    std::span<const std::string_view> own_keys{};
    std::string_view note{};  ///< what the plan assumes of every model of the family
};

/// Families that are built.
std::span<const ConfigFamily> config_families();
const ConfigFamily* find_config_family(std::string_view model_type);
/// The family whose class `architecture` is, "LlamaForCausalLM".
const ConfigFamily* find_family_of_class(std::string_view architecture);

/// Families that exist, but that this version does not build.
std::span<const std::string_view> unsupported_model_types();

}  // namespace zeroplan
