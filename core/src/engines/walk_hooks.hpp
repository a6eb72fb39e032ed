#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "zeroplan/model_spec.hpp"
#include "zeroplan/step_program.hpp"

namespace zeroplan {

/// What the engine adds while a block runs: where parameters and gradients are, which is what ZeRO stages
/// change. `unit` is what the walk's table gives for a parameter: a flat buffer's unit, or the parameter
/// itself where every parameter is a tensor of its own.
struct WalkHooks {
    std::function<BufferId(std::uint32_t unit)>
        parameters;  ///< where the values are; no_buffer: not an argument
    std::function<BufferId(std::uint32_t unit)> gradients;  ///< where backward writes; may allocate
    std::function<bool(std::uint32_t parameter)>
        accumulate;  ///< backward must add (second use of a tied weight)
    /// Optional: right before and after an operator is issued.
    std::function<void(ComputePhase, std::uint32_t block, const Operator&)> before, after;
    /// Optional: what the operator that is about to be issued has to wait for besides.
    std::function<std::vector<OperationId>()> waits;
};

}  // namespace zeroplan
