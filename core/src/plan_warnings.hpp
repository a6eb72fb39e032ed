#pragma once
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Adds what a reader of the plan should know: assumptions of the model, an interval that spans the capacity,
/// a checkpoint that doesn't fit, keys without effect, and what the figures leave out.
void add_plan_warnings(Plan& plan);

}  // namespace zeroplan
