#include "zeroplan/caching_allocator.hpp"

#include <gtest/gtest.h>

#include <random>

namespace zeroplan {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;

TEST(CachingAllocator, ReservesSegmentsBySizeOfTheRequest) {
    CachingAllocator small, middle, large;
    small.allocate(1);
    EXPECT_EQ(small.allocated(), 512U);
    EXPECT_EQ(small.reserved(), 2 * mib);
    middle.allocate(mib + 1);
    EXPECT_EQ(middle.reserved(), 20 * mib);
    large.allocate(11 * mib - 5);
    EXPECT_EQ(large.reserved(), 12 * mib);
}

TEST(CachingAllocator, SplitsLargeBlocksOnlyIfMoreThanAMebibyteIsLeft) {
    CachingAllocator allocator;
    allocator.allocate(19 * mib + 512);  // its own segment of 20 MiB: 1 MiB - 512 left, not split off
    EXPECT_EQ(allocator.allocated(), 20 * mib);
    CachingAllocator other;
    other.allocate(9 * mib);  // 20 MiB segment, 11 MiB stay free
    other.allocate(9 * mib);
    EXPECT_EQ(other.reserved(), 20 * mib);
    EXPECT_EQ(other.allocated(), 18 * mib);
}

TEST(CachingAllocator, MergesFreeNeighboursAndReusesThem) {
    CachingAllocator allocator;
    const auto a = allocator.allocate(4 * mib), b = allocator.allocate(4 * mib),
               c = allocator.allocate(4 * mib);
    allocator.free(*a);
    allocator.free(*b);
    EXPECT_EQ(allocator.allocate(8 * mib), a);
    EXPECT_EQ(allocator.reserved(), 20 * mib);
    EXPECT_NE(a, c);
}

TEST(CachingAllocator, DoesNotShareFreeBlocksBetweenStreams) {
    CachingAllocator allocator;
    allocator.free(*allocator.allocate(30 * mib, 0));
    allocator.allocate(30 * mib, 1);
    EXPECT_EQ(allocator.reserved(), 60 * mib);
    EXPECT_EQ(allocator.peak_allocated(), 30 * mib);
}

TEST(CachingAllocator, GivesBackFreeSegmentsBeforeItFails) {
    CachingAllocator allocator({}, 100 * mib);
    const auto a = allocator.allocate(60 * mib);
    allocator.free(*a);
    EXPECT_TRUE(allocator.allocate(80 * mib));  // the 60 MiB segment is too small and goes
    EXPECT_EQ(allocator.reserved(), 80 * mib);
    EXPECT_FALSE(allocator.allocate(30 * mib));
}

TEST(CachingAllocator, GoesBeyondTheCapacityOnlyWhereToldTo) {
    CachingAllocator allocator({}, 100 * mib);
    allocator.free(*allocator.allocate(60 * mib));
    allocator.allocate_beyond(80 * mib);  // fits once the 60 MiB have gone back
    EXPECT_EQ(allocator.reserved(), 80 * mib);
    const auto beyond = allocator.allocate_beyond(30 * mib);
    EXPECT_EQ(allocator.reserved(), 110 * mib);
    EXPECT_FALSE(allocator.allocate(30 * mib));  // the capacity is as before
    allocator.free(beyond);
    EXPECT_FALSE(allocator.allocate(40 * mib));
    EXPECT_EQ(allocator.reserved(), 80 * mib);
}

TEST(CachingAllocator, ExpandableSegmentsGrowInsteadOfFragmenting) {
    CachingAllocator plain, expandable({.expandable_segments = true});
    for (CachingAllocator* allocator : {&plain, &expandable}) {
        const auto a = allocator->allocate(40 * mib);
        allocator->free(*a);
        allocator->allocate(60 * mib);
    }
    EXPECT_EQ(plain.reserved(), 100 * mib);
    EXPECT_EQ(expandable.reserved(), 60 * mib);
}

TEST(CachingAllocator, MaxSplitSizeKeepsLargeBlocksWhole) {
    CachingAllocator allocator({.max_split_size_bytes = 64 * mib});
    allocator.free(*allocator.allocate(100 * mib));
    allocator.allocate(30 * mib);
    EXPECT_EQ(allocator.reserved(), 130 * mib);
}

TEST(CachingAllocator, RefusesWhatIsNotAllocated) {
    CachingAllocator allocator;
    const auto a = allocator.allocate(4 * mib), b = allocator.allocate(4 * mib);
    EXPECT_THROW(allocator.free({a->address, b->block}), Error);
    EXPECT_THROW(allocator.free({a->address, 99}), Error);
    allocator.free(*a);
    EXPECT_THROW(allocator.free(*a), Error);
    allocator.free(*b);  // merged into the block before it, which is free: its number is none any more
    EXPECT_THROW(allocator.free(*b), Error);
    allocator.empty_cache();
    EXPECT_THROW(allocator.free(*a), Error);
    EXPECT_EQ(allocator.reserved(), 0U);
}

TEST(CachingAllocator, KeepsItsBooksOverRandomTraffic) {
    for (const bool expandable : {false, true}) {
        CachingAllocator allocator({.expandable_segments = expandable});
        std::mt19937_64 random(7);
        std::vector<std::pair<CachingAllocator::Handle, std::uint64_t>> live;
        std::uint64_t asked = 0;
        for (int i = 0; i < 20000; ++i) {
            if (live.size() < 50 || random() % 2 == 0) {
                const std::uint64_t bytes = 1 + random() % (random() % 8 == 0 ? 64 * mib : mib / 4);
                live.emplace_back(*allocator.allocate(bytes, static_cast<std::uint32_t>(random() % 3)),
                                  bytes);
                asked += CachingAllocator::rounded(bytes);
            } else {
                std::swap(live[random() % live.size()], live.back());
                asked -= CachingAllocator::rounded(live.back().second);
                allocator.free(live.back().first);
                live.pop_back();
            }
            ASSERT_GE(allocator.allocated(), asked);
            ASSERT_GE(allocator.reserved(), allocator.allocated());
        }
        for (const auto& block : live) allocator.free(block.first);
        EXPECT_EQ(allocator.allocated(), 0U);
        allocator.empty_cache();
        EXPECT_EQ(allocator.reserved(), 0U);
        EXPECT_THROW(allocator.free({12345, 0}), Error);
    }
}

}  // namespace
}  // namespace zeroplan
