#pragma once
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// Throws Error{not_supported} naming the key for offload that the engine's program has no copies and host
/// steps for: its plan is one of memory.
void check_time_is_modelled(const TrainingConfig& training);

}  // namespace zeroplan
