#pragma once
#include <span>

#include "import/config_families.hpp"

namespace zeroplan {

/// Decoders that are Llama's but for a detail: gemma, gemma2, gemma3_text, phi3, olmo, olmo2, glm4, cohere,
/// cohere2, granite, smollm3.
std::span<const ConfigFamily> llama_like_families();

}  // namespace zeroplan
