#pragma once
#include "cost/step_costs.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan {

/// A section's operations as nodes. Waits that are met anyway, because something waited for earlier implies
/// them, are dropped: that keeps nodes few, and what is dropped can never bind.
TimedSection lower(const Section& section, StepCosts& costs);

}  // namespace zeroplan
