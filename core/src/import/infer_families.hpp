#pragma once
#include <nlohmann/json_fwd.hpp>

#include "import/checkpoint_shapes.hpp"

namespace zeroplan {

/// The config.json of a decoder with a table called embed_tokens: Llama's kin, by what its first layer holds.
/// Throws Error{not_supported} for latent attention, whose head sizes no shape tells.
nlohmann::json infer_llama_like(const CheckpointShapes& shapes);

/// The same of a checkpoint with other names; null if they are none's that is known.
nlohmann::json infer_other_family(const CheckpointHeader& checkpoint);

}  // namespace zeroplan
