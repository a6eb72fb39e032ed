#pragma once
#include <string>

#include "import/safetensors.hpp"
#include "zeroplan/build_model.hpp"

namespace zeroplan {

/// The model whose parameters a checkpoint holds. A config.json beside the file says what it is, and every
/// shape is checked against it; without one the family (infer_config.hpp, or a plain stack), its sizes and
/// biases are inferred from names and shapes, and what they don't tell (the head size, the longest sequence)
/// is assumed and noted. `model` is the scenario's object: its further keys override the config. Throws
/// Error{invalid_input} naming the tensor and both shapes where they disagree, Error{not_supported} for names
/// of no family that is built.
ModelSpec read_checkpoint(const CheckpointHeader& checkpoint, const std::string& name,
                          const ObjectReader& model, const LoweringOptions& options);

}  // namespace zeroplan
