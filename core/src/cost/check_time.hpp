#pragma once
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// Throws Error{not_supported} naming the key for parallelism whose communication and bubbles are not timed,
/// and for offload, whose copies are not: their plan is one of memory.
void check_time_is_modelled(const TrainingConfig& training);

}  // namespace zeroplan
