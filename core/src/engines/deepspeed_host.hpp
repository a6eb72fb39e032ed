#pragma once
#include "engines/deepspeed_rank.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Host memory that one rank's process takes in each phase: what DeepSpeed offloads, page-locked where it
/// locks it, and its swap buffers for NVMe. source: deepspeed/runtime/zero/stage_1_and_2.py, stage3.py,
/// swap_tensor/
HostPhases deepspeed_host(const DeepSpeedRank& rank, bool loads_on_host);

}  // namespace zeroplan
