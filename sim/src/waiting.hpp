#pragma once
#include <optional>
#include <vector>

#include "step_graph.hpp"

namespace zeroplan::sim {

/// A class that others wait for in collectives.
struct LastClass {
    std::uint32_t rank_class = 0;
    std::vector<std::uint32_t> others;  ///< classes that it meets in collectives where somebody waits
    std::uint64_t last_of = 0, collectives = 0;  ///< of the collectives it takes part in where somebody waits
};

/// Whom the classes wait for in their collectives: the class that comes last to most of those it takes part
/// in and that members come to at different times; of several the one that comes last most often, then the
/// one that computes slowest. `programs` are whole, `executed` may repeat sections less often: their last
/// repetition then stands for those left out. Nothing if no class comes last to more than half.
std::optional<LastClass> waited_for(const std::vector<TimedProgram>& programs,
                                    const std::vector<TimedProgram>& executed, const StepGraph& graph,
                                    const std::vector<NodeTimes>& times, const RankClasses& classes);

}  // namespace zeroplan::sim
