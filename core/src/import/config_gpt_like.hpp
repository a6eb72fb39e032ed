#pragma once
#include <span>

#include "import/config_families.hpp"

namespace zeroplan {

/// Decoders with LayerNorm: mpt, bloom, falcon, gpt_neox, gptj, gpt_neo, opt, phi, starcoder2, stablelm.
std::span<const ConfigFamily> gpt_like_families();

}  // namespace zeroplan
