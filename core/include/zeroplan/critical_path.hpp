#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/plan.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {

/// A stretch of the critical path: one operation, or nothing of this rank group.
struct PathSpan {
    double start_s = 0, end_s = 0;
    std::optional<std::size_t> operation;  ///< index into StepTimeline::operations
    bool repetitions = false;              ///< stands for repetitions that the time line leaves out
    friend bool operator==(const PathSpan&, const PathSpan&) = default;
};

/// What a rank group's step waits for from its start to its end, without gaps: read backwards from the
/// operation that ends last, each time to the one whose end let it start. That is the one before it on its
/// stream, else one that it waits for, else the one that ended last: the host waited. Where none ends then,
/// nothing of this group ran: it waits for the host or for another pipeline stage.
std::vector<PathSpan> critical_path(const StepProgram& program, const StepTimeline& timeline);

/// By operation of the time line: whether it is on the critical path.
std::vector<bool> is_critical(const StepProgram& program, const StepTimeline& timeline);

/// The critical path of one phase of a section, over all its repetitions.
struct PathPhase {
    std::string section, phase;  ///< "micro_batch", "forward"; "backward", "optimizer step"
    std::uint64_t times = 1;     ///< repetitions in a step
    double seconds = 0, compute_s = 0, idle_s = 0;
    std::map<std::string, double> exposed_s;  ///< by what computing waits for: "all_gather shard group"
    std::string longest_wait;                 ///< the longest single one, "" if there is none
    double longest_wait_s = 0;
    friend bool operator==(const PathPhase&, const PathPhase&) = default;
};

/// The critical path as a list that can be read: by section and phase, in order of time. What gathers or
/// receives belongs to the phase that it delays, what reduces or sends to the one before. The phases' seconds
/// add up to the step's time.
std::vector<PathPhase> path_phases(const Plan& plan, std::uint32_t rank_group, const StepTimeline& timeline);

}  // namespace zeroplan
