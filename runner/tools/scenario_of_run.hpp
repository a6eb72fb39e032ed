#pragma once
#include <optional>

#include "zeroplan/command/scenario_flags.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan::tool {

/// How many ranks: --ranks, else --gpus, else what the launcher says, else the scenario's gpus_used, else 1.
/// Throws Error{invalid_input} if two of the first three differ.
int ranks_of_run(std::optional<int> ranks_flag, const command::ScenarioFlags& flags,
                 std::optional<int> launched);

/// The scenario asked for, with this machine as its cluster, whatever cluster it names: one node, a GPU's
/// place taken by a process. Throws Error{invalid_input} if flags ask for another cluster.
ScenarioRequest request_of_run(const command::ScenarioFlags& flags, int ranks);

/// Throws Error{invalid_input} if the ranks need more memory than this machine has left.
void check_memory(const Plan& plan);

}  // namespace zeroplan::tool
