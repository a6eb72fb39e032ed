#pragma once
#include <span>
#include <string_view>

#include "import/config_families.hpp"
#include "import/config_object.hpp"

namespace zeroplan {

/// Keys that say how many experts there are and where.
std::span<const std::string_view> expert_config_keys();
/// Keys of latent attention.
std::span<const std::string_view> latent_attention_keys();

/// The family's mixture of experts; nullopt for a family without. Throws Error{invalid_input} where more
/// experts are chosen than there are, Error{not_supported} for layers that the keys can't place evenly.
std::optional<ExpertConfig> read_experts(const ConfigObject& config, const ConfigFamily& family,
                                         std::uint64_t intermediate_size);

LatentAttentionConfig read_latent_attention(const ConfigObject& config);

}  // namespace zeroplan
