#pragma once
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Most that a step's offloaded activations take of host memory at a time: between their copy to the host and
/// the copy back. Page-locked blocks are kept from step to step by PyTorch's host allocator.
HostMemory activations_on_host(const StepProgram& program);

/// Adds them to the phases in which they are there.
void add_activations(HostPhases& phases, const StepProgram& program);

}  // namespace zeroplan
