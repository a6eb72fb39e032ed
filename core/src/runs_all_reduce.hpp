#pragma once
#include <vector>

#include "zeroplan/step_program.hpp"

namespace zeroplan {

/// Whether a step of any of the programs has an all-reduce.
bool runs_all_reduce(const std::vector<StepProgram>& programs);

}  // namespace zeroplan
