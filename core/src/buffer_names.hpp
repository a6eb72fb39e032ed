#pragma once
#include <string>
#include <string_view>

#include "zeroplan/step_program.hpp"

namespace zeroplan {

/// Whose bytes a buffer holds: "model.layers.3 mlp.gate", "model.layers.3", "lm_head.weight", "kernels".
std::string tensor_name(const Buffer& buffer, const ModelSpec& model, const ShardLayout& layout);

/// "gradient of activation", for people.
std::string_view to_string(BufferRole role);

}  // namespace zeroplan
