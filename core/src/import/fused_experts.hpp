#pragma once
#include "import/safetensors.hpp"

namespace zeroplan {

/// Checkpoints hold each expert's three weights by themselves, Mixtral's under names of its own;
/// transformers' classes hold all experts of a layer in two tensors. Returns the checkpoint as the class
/// would hold it: mlp.experts.gate_up_proj [experts, 2 · width, hidden], mlp.experts.down_proj [experts,
/// hidden, width], and the router as mlp.gate.weight. Experts that are missing or differ are left as they
/// are. source: transformers/conversion_mapping.py (MergeModulelist, Concatenate)
CheckpointHeader with_fused_experts(CheckpointHeader checkpoint);

}  // namespace zeroplan
