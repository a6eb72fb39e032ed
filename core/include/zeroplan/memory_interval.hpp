#pragma once
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Where a measured counter is expected, 9 times of 10.
struct BytesInterval {
    Bytes low, high;
    friend bool operator==(const BytesInterval&, const BytesInterval&) = default;
};

/// Of a rank group's figures.
struct MemoryIntervals {
    BytesInterval allocated, active, reserved, device, resident;
    friend bool operator==(const MemoryIntervals&, const MemoryIntervals&) = default;
};

/// The native engine's arena is planned and measured by the same rule: its intervals are the figures
/// themselves, but for the runtime's. Other engines run kernels and libraries whose temporaries no rule
/// tells: their intervals are shares of the figures, the same for all (memory_interval_constants()).
/// They tell how far a measured counter may lie off; the verdict's own interval (MemorySummary::low and high)
/// tells what the planned program needs of the device, by what the allocator and the runtime may take.
MemoryIntervals memory_intervals(const RankGroup& group, AllocatorKind allocator);

/// The shares, each with its source.
std::vector<Constant> memory_interval_constants();

}  // namespace zeroplan
