#pragma once
#include <span>

#include "import/config_families.hpp"

namespace zeroplan {

/// Decoders with experts whose layers differ from Mixtral's and Qwen's in more than their number: gpt_oss,
/// llama4_text, glm4_moe,
/// olmoe, phimoe.
std::span<const ConfigFamily> moe_families();

}  // namespace zeroplan
