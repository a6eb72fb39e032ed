#pragma once
#include <cstdint>

#include "dataset.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan::runner {

/// Which samples the scenario's ranks see when.
BatchSchedule schedule_of(const Scenario& scenario, const Dataset& dataset);

/// Steps that the scenario's run takes: all of its epochs, or /run/steps if that is less.
std::uint64_t step_count(const RunConfig& run, const BatchSchedule& schedule);

/// Data is read row by row and never held, but the losses and times of all steps are. Throws
/// Error{invalid_input} if they exceed `available`, or if a step has more micro-batches than there are
/// samples.
void check_run_length(const Scenario& scenario, const Dataset& dataset, Bytes available);

}  // namespace zeroplan::runner
