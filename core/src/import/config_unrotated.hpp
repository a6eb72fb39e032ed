#pragma once
#include "import/config_families.hpp"

namespace zeroplan {

/// The layers without rotary embedding: a list of zeros and ones, or every no_rope_layer_interval-th layer, 4
/// without one. source: transformers' Llama4TextConfig and SmolLM3Config
void read_unrotated_layers(const ConfigObject& config, DecoderConfig& decoder);

}  // namespace zeroplan
