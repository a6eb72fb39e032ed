#pragma once
#include <vector>

#include "zeroplan/report.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan::sim {

/// What one link of each class carries in a step of `step_time_s`; classes that carry nothing are left out.
std::vector<LinkLoad> link_loads(const TimedProgram& program, const ClusterSpec& cluster, double step_time_s);

}  // namespace zeroplan::sim
