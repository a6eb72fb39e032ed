#pragma once
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// Throws Error{invalid_input} if the GPU has no products in fp8, or not of the recipe's kind. A GPU whose
/// compute capability isn't stated is taken at its word.
/// source: transformer_engine/pytorch/quantization.py (_compute_fp8_support, _compute_mxfp8_support)
void check_fp8_hardware(const Scenario& scenario);

}  // namespace zeroplan
