#include "import/config_experts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

constexpr std::string_view expert_keys[] = {
    "num_local_experts",   "num_experts",     "n_routed_experts",      "num_experts_per_tok",
    "n_shared_experts",    "moe_layer_freq",  "moe_intermediate_size", "shared_expert_intermediate_size",
    "decoder_sparse_step", "mlp_only_layers", "first_k_dense_replace"};
constexpr std::string_view attention_keys[] = {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim",
                                               "qk_rope_head_dim", "v_head_dim"};

constexpr std::uint64_t most_experts = 1ULL << 16, most_width = 1ULL << 24, most_layers = 10'000;

std::uint64_t size_or(const ConfigObject& config, std::string_view key, std::uint64_t most,
                      std::uint64_t fallback) {
    return config.size({key}, most).value_or(fallback);
}

/// A count that may be 0 or null.
std::uint64_t count_or(const ConfigObject& config, std::string_view key, std::uint64_t fallback) {
    return config.holder(key).integer(key, 0, most_layers).value_or(fallback);
}

ExpertConfig read_mixtral(const ConfigObject& config, const ConfigFamily& family,
                          std::uint64_t intermediate_size) {
    return {
        .count = size_or(config, "num_local_experts", most_experts, family.model_type == "phimoe" ? 16 : 8),
        .per_token = size_or(config, "num_experts_per_tok", most_experts, 2),
        .intermediate_size = intermediate_size};
}

ExpertConfig read_olmoe(const ConfigObject& config, std::uint64_t intermediate_size) {
    return {.count = size_or(config, "num_experts", most_experts, 64),
            .per_token = size_or(config, "num_experts_per_tok", most_experts, 8),
            .intermediate_size = intermediate_size};
}

// GptOssExperts and GptOssTopKRouter.
ExpertConfig read_gpt_oss(const ConfigObject& config, std::uint64_t intermediate_size) {
    return {.count = size_or(config, "num_local_experts", most_experts, 128),
            .per_token = size_or(config, "num_experts_per_tok", most_experts, 4),
            .intermediate_size = intermediate_size,
            .biases = true,
            .transposed = true,
            .clamped = true};
}

// Llama4TextMoe; the layers' widths stand in its configuration under other names.
ExpertConfig read_llama4(const ConfigObject& config, std::uint64_t intermediate_size) {
    return {.count = size_or(config, "num_local_experts", most_experts, 16),
            .per_token = size_or(config, "num_experts_per_tok", most_experts, 1),
            .intermediate_size = intermediate_size,
            .shared_intermediate_size = intermediate_size,
            .every = size_or(config, "interleave_moe_layer_step", most_layers, 1),
            .transposed = true,
            .weighs_input = true};
}

ExpertConfig read_qwen(const ConfigObject& config, bool shared) {
    if (const auto dense = config.holder("mlp_only_layers").integers("mlp_only_layers");
        dense && !dense->empty())
        config.fail({"mlp_only_layers"}, "single dense layers among layers with experts are not modelled",
                    "give an empty list, or decoder_sparse_step", ErrorCode::not_supported);
    ExpertConfig experts{
        .count = size_or(config, "num_experts", most_experts, shared ? 60 : 128),
        .per_token = size_or(config, "num_experts_per_tok", most_experts, shared ? 4 : 8),
        .intermediate_size = size_or(config, "moe_intermediate_size", most_width, shared ? 1408 : 768),
        .every = size_or(config, "decoder_sparse_step", most_layers, 1)};
    if (!shared) return experts;
    experts.shared_intermediate_size = size_or(config, "shared_expert_intermediate_size", most_width, 5632);
    experts.shared_gate = true;
    return experts;
}

/// Of transformers' configuration_<model_type>.py.
struct DeepseekDefaults {
    std::uint64_t width, experts, per_token, shared, first;
};
DeepseekDefaults deepseek_defaults(std::string_view model_type) {
    if (model_type == "deepseek_v2") return {1407, 64, 6, 2, 0};
    if (model_type == "deepseek_v3") return {2048, 256, 8, 1, 3};
    return {1408, 128, 8, 1, 1};  // glm4_moe
}

ExpertConfig read_deepseek(const ConfigObject& config, std::string_view model_type) {
    if (size_or(config, "moe_layer_freq", most_layers, 1) != 1)
        config.fail({"moe_layer_freq"}, "experts in every k-th layer of a deepseek model are not modelled",
                    "give 1", ErrorCode::not_supported);
    const DeepseekDefaults usual = deepseek_defaults(model_type);
    const std::uint64_t width = size_or(config, "moe_intermediate_size", most_width, usual.width);
    return {.count = size_or(config, "n_routed_experts", most_experts, usual.experts),
            .per_token = size_or(config, "num_experts_per_tok", most_experts, usual.per_token),
            .intermediate_size = width,
            .shared_intermediate_size = width * count_or(config, "n_shared_experts", usual.shared),
            .first_layer = count_or(config, "first_k_dense_replace", usual.first),
            .correction_bias = model_type != "deepseek_v2"};
}

}  // namespace

std::span<const std::string_view> expert_config_keys() {
    return expert_keys;
}

std::span<const std::string_view> latent_attention_keys() {
    return attention_keys;
}

std::optional<ExpertConfig> read_experts(const ConfigObject& config, const ConfigFamily& family,
                                         std::uint64_t intermediate_size) {
    ExpertConfig experts;
    switch (family.experts) {
        case ExpertFamily::none:
            return std::nullopt;
        case ExpertFamily::mixtral:
            experts = read_mixtral(config, family, intermediate_size);
            break;
        case ExpertFamily::qwen2:
        case ExpertFamily::qwen3:
            experts = read_qwen(config, family.experts == ExpertFamily::qwen2);
            break;
        case ExpertFamily::olmoe:
            experts = read_olmoe(config, intermediate_size);
            break;
        case ExpertFamily::deepseek:
            experts = read_deepseek(config, family.model_type);
            break;
        case ExpertFamily::gpt_oss:
            experts = read_gpt_oss(config, intermediate_size);
            break;
        case ExpertFamily::llama4:
            experts = read_llama4(config, intermediate_size);
            break;
    }
    if (experts.per_token > experts.count)
        config.fail(
            {"num_experts_per_tok"},
            fmt::format("a token goes to {} experts, but there are {}", experts.per_token, experts.count),
            "num_experts_per_tok has to be at most the number of experts");
    return experts;
}

LatentAttentionConfig read_latent_attention(const ConfigObject& config) {
    // q_lora_rank null means that queries are projected directly.
    const bool direct =
        config.holder("q_lora_rank").value().contains("q_lora_rank") && !config.has("q_lora_rank");
    return {.query_rank = direct ? 0 : size_or(config, "q_lora_rank", most_width, 1536),
            .key_value_rank = size_or(config, "kv_lora_rank", most_width, 512),
            .key_dim = size_or(config, "qk_nope_head_dim", most_width, 128),
            .rope_dim = size_or(config, "qk_rope_head_dim", most_width, 64),
            .value_dim = size_or(config, "v_head_dim", most_width, 128)};
}

}  // namespace zeroplan
