#pragma once
#include <nlohmann/json_fwd.hpp>

#include "import/safetensors.hpp"

namespace zeroplan {

/// The config.json that a checkpoint's names and shapes tell of, for Llama's and GPT-2's names, with a list
/// "notes" of what was assumed. Throws Error{not_supported} for other names.
nlohmann::json infer_config(const CheckpointHeader& checkpoint);

}  // namespace zeroplan
