#pragma once
#include <span>

#include "zeroplan/explain.hpp"

namespace zeroplan {

/// `live` buffers of a program, those that differ only in the number of their layer together, largest first.
std::vector<LiveTensors> group_live(const Plan& plan, std::uint32_t program, std::span<const BufferId> live);

}  // namespace zeroplan
