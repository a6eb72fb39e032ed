#pragma once
#include <optional>
#include <string>

#include "import/safetensors.hpp"
#include "zeroplan/model_spec.hpp"

namespace zeroplan {

/// The plain stack whose parameters a checkpoint of `zeroplan run` holds: as its header describes it, else by
/// the names layers.N.linear.weight and .bias and their shapes, with a note of what those don't tell, the
/// activations and the loss. `model` is the scenario's object, whose "loss" and "layers" override. Nothing if
/// the names are others.
std::optional<ModelSpec> read_stack_checkpoint(const CheckpointHeader& checkpoint, const std::string& name,
                                               const ObjectReader& model);

}  // namespace zeroplan
