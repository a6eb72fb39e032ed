#pragma once
#include <optional>
#include <vector>

#include "step_graph.hpp"
#include "zeroplan/what_if_report.hpp"

namespace zeroplan::sim {

/// Whom the classes wait for in their collectives: of those who come last somewhere, the class that costs the
/// others most. `programs` are whole, `executed` may repeat sections less often: their last repetition then
/// stands for those left out. How long that is exposed is left to the caller. Nothing if everybody always
/// comes at once.
std::optional<WaitedFor> waited_for(const std::vector<TimedProgram>& programs,
                                    const std::vector<TimedProgram>& executed, const StepGraph& graph,
                                    const std::vector<NodeTimes>& times, const RankClasses& classes);

}  // namespace zeroplan::sim
