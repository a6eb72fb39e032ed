#include "zeroplan/memory_interval.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

RankGroup group() {
    RankGroup group;
    group.steady.allocated = Bytes{1000};
    group.peak_active = Bytes{1000};
    group.peak_reserved = Bytes{2000};
    group.resident = Bytes{100};
    group.runtime_low = Bytes{30};
    group.runtime = Bytes{45};
    group.runtime_high = Bytes{60};
    return group;
}

TEST(MemoryIntervals, OfTheArenaAreTheFiguresThemselves) {
    const MemoryIntervals intervals = memory_intervals(group(), AllocatorKind::arena);
    EXPECT_EQ(intervals.allocated, (BytesInterval{Bytes{1000}, Bytes{1000}}));
    EXPECT_EQ(intervals.resident, (BytesInterval{Bytes{100}, Bytes{100}}));
    EXPECT_EQ(intervals.device, (BytesInterval{Bytes{2030}, Bytes{2060}}));
}

TEST(MemoryIntervals, OfPyTorchAreSharesOfTheFigures) {
    const MemoryIntervals intervals = memory_intervals(group(), AllocatorKind::caching);
    EXPECT_EQ(intervals.allocated, (BytesInterval{Bytes{990}, Bytes{1040}}));
    EXPECT_EQ(intervals.active, (BytesInterval{Bytes{980}, Bytes{1120}}));
    EXPECT_EQ(intervals.reserved, (BytesInterval{Bytes{1740}, Bytes{2360}}));
    EXPECT_EQ(intervals.device, (BytesInterval{Bytes{1770}, Bytes{2420}}));
}

TEST(MemoryIntervals, OfReservedHoldWhatIsAllocated) {
    RankGroup full = group();
    full.peak_reserved = full.steady.allocated;
    EXPECT_EQ(memory_intervals(full, AllocatorKind::caching).reserved.low, Bytes{990});
}

}  // namespace
}  // namespace zeroplan
