#include "zeroplan/memory_interval.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

const char* const published_runs =
    "5th to 95th percentile of measured / predicted in published runs (docs/accuracy.md), rounded outward";

struct Shares {
    Constant low, high;
};

Shares shares(const char* low_name, double low, const char* high_name, double high) {
    return {{low_name, low, "1", published_runs, "calibrated constant"},
            {high_name, high, "1", published_runs, "calibrated constant"}};
}

const Shares allocated = shares("allocated_low_share", 0.99, "allocated_high_share", 1.04);
const Shares active = shares("active_low_share", 0.98, "active_high_share", 1.12);
const Shares reserved = shares("reserved_low_share", 0.87, "reserved_high_share", 1.18);
const Shares resident = shares("resident_low_share", 0.98, "resident_high_share", 1.04);

BytesInterval around(Bytes figure, const Shares& shares) {
    const auto scaled = [&](const Constant& share) {
        return Bytes{static_cast<std::uint64_t>(static_cast<double>(figure.count()) * share.value)};
    };
    return {scaled(shares.low), scaled(shares.high)};
}

BytesInterval exactly(Bytes figure) {
    return {figure, figure};
}

}  // namespace

MemoryIntervals memory_intervals(const RankGroup& group, AllocatorKind allocator) {
    MemoryIntervals intervals{exactly(group.steady.allocated),
                              exactly(group.peak_active),
                              exactly(group.peak_reserved),
                              {},
                              exactly(group.resident)};
    if (allocator == AllocatorKind::caching) {
        intervals.allocated = around(group.steady.allocated, allocated);
        intervals.active = around(group.peak_active, active);
        intervals.reserved = around(group.peak_reserved, reserved);
        // What is reserved holds what is allocated.
        intervals.reserved.low = std::max(intervals.reserved.low, intervals.allocated.low);
        intervals.resident = around(group.resident, resident);
    }
    intervals.device = {intervals.reserved.low + group.runtime_low,
                        intervals.reserved.high + group.runtime_high};
    return intervals;
}

std::vector<Constant> memory_interval_constants() {
    std::vector<Constant> all;
    for (const Shares* counter : {&allocated, &active, &reserved, &resident})
        all.insert(all.end(), {counter->low, counter->high});
    return all;
}

}  // namespace zeroplan
