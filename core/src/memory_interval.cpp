#include "zeroplan/memory_interval.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

const char* const published_runs =
    "5th to 95th percentile of measured / predicted in published runs (docs/accuracy.md), rounded outward";

struct Shares {
    Constant low, high;
};

Shares shares(const std::string& counter, double low, double high) {
    return {{counter + "_low_share", low, "1", published_runs, "calibrated constant"},
            {counter + "_high_share", high, "1", published_runs, "calibrated constant"}};
}

struct CounterShares {
    Shares allocated = shares("allocated", 0.99, 1.04), active = shares("active", 0.98, 1.12),
           reserved = shares("reserved", 0.87, 1.18), resident = shares("resident", 0.98, 1.04);
};

const CounterShares& counter_shares() {
    static const CounterShares values;
    return values;
}

Bytes scaled(Bytes figure, const Constant& share) {
    constexpr double beyond = 0x1p64;
    const double bytes = static_cast<double>(figure.count()) * share.value;
    return Bytes{bytes < beyond ? static_cast<std::uint64_t>(bytes) : ~std::uint64_t{0}};
}

BytesInterval around(Bytes figure, const Shares& shares) {
    return {scaled(figure, shares.low), scaled(figure, shares.high)};
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
        const CounterShares& of = counter_shares();
        intervals.allocated = around(group.steady.allocated, of.allocated);
        intervals.active = around(group.peak_active, of.active);
        intervals.reserved = around(group.peak_reserved, of.reserved);
        // What is reserved holds what is allocated.
        intervals.reserved.low = std::max(intervals.reserved.low, intervals.allocated.low);
        intervals.resident = around(group.resident, of.resident);
    }
    intervals.device = {intervals.reserved.low + group.runtime_low,
                        intervals.reserved.high + group.runtime_high};
    return intervals;
}

std::vector<Constant> memory_interval_constants() {
    std::vector<Constant> all;
    const CounterShares& of = counter_shares();
    for (const Shares* counter : {&of.allocated, &of.active, &of.reserved, &of.resident})
        all.insert(all.end(), {counter->low, counter->high});
    return all;
}

}  // namespace zeroplan
