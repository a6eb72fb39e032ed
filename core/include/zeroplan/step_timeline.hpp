#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Start and end of one operation of a steady step, seconds from the step's start.
struct TimedOperation {
    std::uint32_t section = 0;    ///< of StepProgram::step
    std::uint64_t iteration = 0;  ///< which repetition of the section
    OperationId operation = 0;
    Stream stream = Stream::compute;
    double start_s = 0, end_s = 0;
    friend bool operator==(const TimedOperation&, const TimedOperation&) = default;
};

/// Differences of times below this share of the step are rounding.
inline constexpr double rounding_share = 1e-9;

/// A steady step in time, as the closed form or the simulation sees it.
struct StepTimeline {
    std::vector<TimedOperation> operations;  ///< Compute, OptimizerStep, Collective, Accumulate, copies and
                                             ///< host steps; in issue order
    double step_time_s = 0;
    double compute_s = 0;                ///< time with a compute operation running
    double communication_s = 0;          ///< sum over collectives of their durations
    double exposed_communication_s = 0;  ///< step time in which only communication runs
    double offload_s = 0;                ///< sum of copies to and from the host and of its work
    double exposed_offload_s = 0;        ///< step time in which only those run
    double bubble_s = 0;                 ///< step time in which nothing runs
    double slowed_s = 0;           ///< how much longer work takes for collectives beside it; sum over streams
    double low_s = 0, high_s = 0;  ///< interval of step_time_s
    std::string fidelity;          ///< "closed form", "coupled flows"
    friend bool operator==(const StepTimeline&, const StepTimeline&) = default;
};

/// What a step's time means for the training; model flops count matrix products and attention, forward × 3,
/// without recomputation.
struct Throughput {
    double tokens_per_s_per_gpu = 0;  ///< samples for a plain stack
    double model_flop_per_s_per_gpu = 0;
    double mfu = 0;  ///< of the GPU's dense peak in the compute dtype
    /// With what is recomputed, which MFU leaves out.
    double hardware_flop_per_s_per_gpu = 0, hfu = 0;
    friend bool operator==(const Throughput&, const Throughput&) = default;
};

/// Critical path of a rank group's step over its streams: every operation starts when it has been issued, its
/// stream is free and what it waits for has ended. Collectives slow down work beside them (slow_down), but no
/// two streams share links; microseconds to compute.
/// Pipeline stages run side by side: each waits for what the others send.
StepTimeline closed_form_step(const Plan& plan, std::uint32_t rank_group = 0);
/// The same for every program of the plan.
std::vector<StepTimeline> closed_form_steps(const Plan& plan);

Throughput throughput(const Plan& plan, double step_time_s);

}  // namespace zeroplan
