#pragma once
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// What a job can't do without on its fullest device, found without a plan: a bound that rules a job out, for
/// those who look at thousands of jobs.
struct MemoryEstimate {
    /// Highest sum of live tensors from load to a steady step, each rounded up to 512 B. It is the plan's
    /// peak allocated to the byte where the arena hands out memory, and where PyTorch's allocator does, no
    /// more than it: its blocks are larger than the tensors in them.
    Bytes peak_live;
    Phase phase = Phase::load;          ///< the first that reaches it
    Bytes runtime_low, runtime;         ///< context and communicators: low end of the interval, expected
    std::uint64_t repeated_layers = 0;  ///< equal layers that were accounted by the difference one makes

    /// Above a device's memory the job can't fit; below, only a plan tells.
    Bytes least_device() const { return peak_live + runtime_low; }
    friend bool operator==(const MemoryEstimate&, const MemoryEstimate&) = default;
};

/// Peaks only. A model's equal layers are laid out twice with a handful of them, and what one more makes of
/// every moment is carried on to all: exact for programs that treat equal layers alike. Where the engine, or
/// what the training asks of single layers, doesn't, the whole program is walked.
/// Throws what make_plan() throws of an engine that can't have the job.
MemoryEstimate estimate_memory(const Scenario& scenario);

}  // namespace zeroplan
