#pragma once
#include <vector>

#include "zeroplan/rank_classes.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan::sim {

/// What one link of each kind carries in a step of `step_time_s`, links at a fraction of their bandwidth
/// apart; kinds that carry nothing are left out. `programs`: one a class.
std::vector<LinkLoad> link_loads(const std::vector<TimedProgram>& programs, const RankClasses& classes,
                                 const ClusterSpec& cluster, double step_time_s);

/// The links between leaf switches and what joins those: this job's load on the fullest of them.
void add_uplink_load(std::vector<LinkLoad>& loads, const std::vector<TimedProgram>& programs,
                     const RankClasses& classes, double uplink_bytes_per_s, double step_time_s);

}  // namespace zeroplan::sim
