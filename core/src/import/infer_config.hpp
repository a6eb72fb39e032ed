#pragma once
#include <nlohmann/json_fwd.hpp>

#include "import/safetensors.hpp"

namespace zeroplan {

/// The config.json that a checkpoint's names and shapes tell of, with a list "notes" of what was assumed.
/// Throws Error{not_supported} for names of no family that is recognised.
nlohmann::json infer_config(const CheckpointHeader& checkpoint);

}  // namespace zeroplan
