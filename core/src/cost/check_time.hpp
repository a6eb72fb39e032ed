#pragma once
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// Throws Error{not_supported} naming the degree for parallelism whose communication and bubbles are not
/// timed: its plan is one of memory.
void check_time_is_modelled(const TrainingConfig& training);

}  // namespace zeroplan
