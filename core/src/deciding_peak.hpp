#pragma once
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// A moment of a program: right after an operation of a section of a phase was issued.
struct Moment {
    Phase phase = Phase::steady_step;
    std::uint32_t section = 0;
    OperationId operation = 0;
};

/// Sections of a phase; a program without a first step of its own repeats the steady one.
std::span<const Section> sections_of(const StepProgram& program, Phase phase);
/// Buffers live at a moment, in order of allocation.
std::vector<BufferId> live_at(const StepProgram& program, const Moment& moment);

/// The peak that decides whether a plan fits: of the worst rank group, in the phase that is judged.
struct DecidingPeak {
    std::uint32_t group = 0;
    Moment moment;
    Bytes reserved;
    std::vector<BufferId> live;
};
DecidingPeak deciding_peak(const Plan& plan);

/// Sum of the live buffers by category, each rounded up to 512 B.
CategoryBytes bytes_of(const StepProgram& program, std::span<const BufferId> live);

/// What the deciding peak consists of; sums to MemorySummary::overall_peak_device.
struct PeakIngredients {
    CategoryBytes categories;
    Bytes holes;  ///< reserved beyond the buffers' bytes: holes, and blocks larger than their buffer
    Bytes runtime;
    friend bool operator==(const PeakIngredients&, const PeakIngredients&) = default;
};
PeakIngredients peak_ingredients(const Plan& plan);

}  // namespace zeroplan
