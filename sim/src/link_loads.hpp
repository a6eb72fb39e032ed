#pragma once
#include <vector>

#include "zeroplan/rank_classes.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan::sim {

/// What one link of each kind carries in a step of `step_time_s`, links at a fraction of their bandwidth
/// apart; kinds that carry nothing are left out. `programs`: one a class.
std::vector<LinkLoad> link_loads(const std::vector<TimedProgram>& programs, const RankClasses& classes,
                                 const ClusterSpec& cluster, double step_time_s);

/// The links of the fabric that can hold anything back: this job's load on the fullest of each kind.
void add_fabric_loads(std::vector<LinkLoad>& loads, const std::vector<TimedProgram>& programs,
                      const RankClasses& classes, const FabricRoutes& routes, double step_time_s);

}  // namespace zeroplan::sim
