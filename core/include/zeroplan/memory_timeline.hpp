#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "zeroplan/category.hpp"
#include "zeroplan/step_program.hpp"

namespace zeroplan {

/// Live bytes right after operation `operation` of section `section` was issued.
struct MemorySample {
    std::uint32_t section = 0;
    OperationId operation = 0;
    CategoryBytes live;
    friend bool operator==(const MemorySample&, const MemorySample&) = default;
};

/// The moment of the highest total, who is live then, and the operation that was being issued.
struct MemoryPeak {
    Bytes allocated;
    CategoryBytes at_peak;  ///< sums to `allocated` exactly
    std::uint32_t section = 0;
    OperationId operation = 0;
    std::vector<BufferId> live;  ///< in order of allocation
    friend bool operator==(const MemoryPeak&, const MemoryPeak&) = default;
};

/// Accounts the allocations of `sections` in issue order, starting from the buffers live in `resident`.
/// Memory needs no clock: an allocation happens when the host issues it. Sizes are the arena's, rounded up to
/// 512 B. Throws Error{invalid_input} if a buffer is allocated twice or freed while not live.
MemoryPeak memory_peak(const StepProgram& program, std::span<const Section> sections,
                       std::span<const BufferId> resident);

/// One sample for every operation that allocates or frees; a repeated section is listed once.
std::vector<MemorySample> memory_timeline(const StepProgram& program, std::span<const Section> sections,
                                          std::span<const BufferId> resident);

/// Buffers that a section leaves live, given what was live before it.
std::vector<BufferId> live_after(std::span<const Section> sections, std::span<const BufferId> before);

/// What is live when a steady step begins: after load, init and the first step.
std::vector<BufferId> resident_buffers(const StepProgram& program);

}  // namespace zeroplan
