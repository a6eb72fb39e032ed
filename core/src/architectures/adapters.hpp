#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "zeroplan/model_spec.hpp"

namespace zeroplan {

/// Low-rank adapters beside linear layers; everything else is frozen.
struct AdapterOptions {
    std::uint64_t rank = 0;
    bool all_linear = false;           ///< every linear of a layer
    std::vector<std::string> targets;  ///< last part of a module's name: "q_proj"
    ParameterStorage base_storage = ParameterStorage::engine;
};

/// Freezes every parameter and puts a pair of trained matrices A [rank, in], B [out, rank] beside each
/// target: y = W·x + s · B·(A·x). What only the gradient of a frozen weight would read is no longer saved.
/// Quantised weights are written out in the compute dtype for each product. Throws Error{invalid_input} if no
/// layer has a target's name.
void apply_adapter(ModelSpec& model, const AdapterOptions& options);

/// Freezes the parameters whose names contain one of `patterns` (a * stands for any text). Throws
/// Error{invalid_input} for a pattern that matches nothing.
void freeze_parameters(ModelSpec& model, const std::vector<std::string>& patterns);

}  // namespace zeroplan
