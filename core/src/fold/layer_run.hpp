#pragma once
#include <cstdint>

#include "zeroplan/model_spec.hpp"

namespace zeroplan {

/// Blocks [first, first + count) of a model.
struct LayerRun {
    std::uint32_t first = 0, count = 0;
    friend bool operator==(const LayerRun&, const LayerRun&) = default;
};

/// The longest run of blocks of one kind, each with parameters of its own of the same shapes in the same
/// order, one block's behind another's in registration.
LayerRun longest_run(const ModelSpec& model);

/// The model with the first `kept` blocks of the run in place of all of them. The description that engines
/// build a rank's part from (ModelSpec::decoder …) is left out: it would say another number of layers.
ModelSpec shortened(const ModelSpec& model, LayerRun run, std::uint32_t kept);

}  // namespace zeroplan
