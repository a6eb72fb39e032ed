#pragma once
#include <atomic>
#include <cstdint>

#include "step_graph.hpp"

namespace zeroplan::sim {

/// Runs `graph` on SimGrid and writes start and end of every node to `times`, which has room for all of
/// them; counts finished nodes in `finished`. Once a process: SimGrid's engine can't be had twice.
/// Throws Error{run_failed} if nodes are left that nothing can start.
void execute_on_simgrid(const StepGraph& graph, NodeTime* times, std::atomic<std::uint64_t>& finished);

}  // namespace zeroplan::sim
