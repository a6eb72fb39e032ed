#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Live bytes of a section, operation by operation.
struct SectionMemory {
    /// One entry for every run that differs. A repeated section in the caching allocator has two: the second
    /// run finds the blocks that the first one left, and all later ones are like the second.
    std::vector<std::vector<MemorySample>> runs;

    std::span<const MemorySample> of_iteration(std::uint64_t iteration) const;
    /// The run with the highest total; the later one of equals.
    std::span<const MemorySample> fullest() const;
    friend bool operator==(const SectionMemory&, const SectionMemory&) = default;
};

/// Live bytes of one rank group over a steady step, in issue order.
struct StepMemory {
    CategoryBytes before;                 ///< what is live when the step begins
    std::vector<SectionMemory> sections;  ///< as StepProgram::step
    /// The highest total: RankGroup::steady.allocated to the byte.
    Bytes peak() const;
    friend bool operator==(const StepMemory&, const StepMemory&) = default;
};

/// Memory over a steady step by the plan's allocator: sizes are those that the plan's peaks count, which in
/// PyTorch's caching allocator are the blocks', not the tensors'.
StepMemory step_memory(const Plan& plan, std::uint32_t rank_group);

}  // namespace zeroplan
