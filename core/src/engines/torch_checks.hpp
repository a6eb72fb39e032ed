#pragma once
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// Refuses what the PyTorch engines don't model. Throws Error{not_supported} with key, value and way out.
void check_torch(const Scenario& scenario);

}  // namespace zeroplan
