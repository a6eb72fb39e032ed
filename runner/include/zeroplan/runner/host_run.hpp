#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "zeroplan/plan.hpp"
#include "zeroplan/report.hpp"
#include "zeroplan/runner/arena.hpp"
#include "zeroplan/runner/host_world.hpp"

namespace zeroplan::runner {

/// A step that has just been done.
struct StepProgress {
    std::uint64_t step = 0, steps = 0;  ///< counted from 1, and how many there will be
    double loss = 0;                    ///< mean over the samples of all ranks
};

struct HostRunOptions {
    std::function<void(const StepProgress&)> on_step;  ///< called on every rank; may be empty
    std::function<void(const std::string&)> on_warning;
    bool trace = false;  ///< record the last step
    /// Poison finds reads of memory that nothing has written.
    Arena::Fill fill = Arena::Fill::zero;
};

struct HostRun {
    RunReport report;   ///< the same on every rank
    std::string trace;  ///< Chrome trace of all ranks, on rank 0 if asked for
    /// Why rank 0 could not keep the checkpoint: the run itself is whole.
    std::optional<Error> checkpoint_failure{};
};

/// Throws Error{not_supported, invalid_input} naming what the host back end can't train, or what of `run`
/// doesn't fit the model; before any process is started.
void check_host_run(const Scenario& scenario);

/// Trains the plan's scenario as one rank of `world`: executes the plan's step program, measures, saves. The
/// process's peak counts from the moment when everything outside the arena is in place: program and
/// libraries, the matrix library's buffers, the communicators' staging (shared memory, present from the
/// start). Throws PeerFailure if another rank fails, and tells the others if this one does.
HostRun run_on_host(const Plan& plan, HostWorld& world, const HostRunOptions& options);

}  // namespace zeroplan::runner
