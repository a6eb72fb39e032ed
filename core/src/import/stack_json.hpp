#pragma once
#include <string>

#include "import/config_object.hpp"
#include "zeroplan/build_model.hpp"

namespace zeroplan {

/// A plain stack: {"layers": [{"linear": [in, out], "bias": true, "activation": "none"}, …], "loss": "mse"},
/// with bias true and activation none by default. Throws Error{invalid_input} with the layer's place.
ModelSpec read_stack(const ConfigObject& stack, const std::string& name);

}  // namespace zeroplan
