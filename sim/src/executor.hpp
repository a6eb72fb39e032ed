#pragma once
#include <atomic>
#include <cstdint>

#include "step_graph.hpp"

namespace zeroplan::sim {

/// How far an execution has come; lives in memory that two processes share.
struct Execution {
    std::atomic<std::uint64_t> finished = 0;  ///< nodes of the job
    std::uint64_t background_steps = 0;       ///< whole ones, while the job's step lasted
    double background_s = 0;                  ///< that these took
};

/// Runs `graph` on SimGrid and writes start and end of every node to `times`, which has room for all of
/// them. Steps of a job in the background start anew as long as the job's step lasts. Once a process:
/// SimGrid's engine can't be had twice. Throws Error{run_failed} if nodes are left that nothing can start.
void execute_on_simgrid(const StepGraph& graph, NodeTime* times, Execution& execution);

}  // namespace zeroplan::sim
