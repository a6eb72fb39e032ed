#pragma once
#include "zeroplan/gui/text.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan::gui {

/// A rank group's device memory from the bottom up: who is live at the allocated peak of a steady step, what
/// the allocator reserves beyond that, and what stands outside the allocator.
struct MemoryStack {
    CategoryBytes allocated;
    Bytes slack, runtime;
    Bytes total() const { return allocated.total() + slack + runtime; }
    friend bool operator==(const MemoryStack&, const MemoryStack&) = default;
};
MemoryStack memory_stack(const RankGroup& group);

/// The highest device memory over load … steady step, which the verdict judges; at least the steady peak.
struct OverallPeak {
    Phase phase = Phase::steady_step;
    Bytes device;
    friend bool operator==(const OverallPeak&, const OverallPeak&) = default;
};
OverallPeak overall_peak(const RankGroup& group);

/// Every digit of `rank`'s memory: heading, one row an ingredient (top of the stack first), what is left.
Description describe_rank(const Plan& plan, std::uint64_t rank, bool dark);

/// Position in Plan::rank_groups of the group that holds `rank`; 0 if none does.
std::uint32_t group_of(const Plan& plan, std::uint64_t rank);

}  // namespace zeroplan::gui
