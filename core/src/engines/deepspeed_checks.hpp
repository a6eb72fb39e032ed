#pragma once
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// Throws Error for what DeepSpeed itself refuses (invalid_input) and for what these rules don't cover
/// (not_supported).
void check_deepspeed(const Scenario& scenario);

}  // namespace zeroplan
