#pragma once
#include <string>
#include <vector>

#include "zeroplan/step_program.hpp"

namespace zeroplan {

/// What would go wrong if the program ran on real streams: a buffer used while not live; read or overwritten
/// while another stream may still be writing or reading it; freed while in use; left allocated at a section's
/// end. Empty for a sound program.
std::vector<std::string> hazards(const StepProgram& program);

}  // namespace zeroplan
