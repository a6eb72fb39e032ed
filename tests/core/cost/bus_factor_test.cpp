#include "cost/bus_factor.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

// nccl-tests doc/PERFORMANCE.md: of 4 ranks 2 · 3 / 4 and 3 / 4.
TEST(BusFactor, IsWhatEveryRanksLinkCarriesOfTheBuffer) {
    EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_reduce, 4), 1.5);
    EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_gather, 4), 0.75);
    EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::reduce_scatter, 4), 0.75);
    EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::all_to_all, 4), 0.75);
    EXPECT_DOUBLE_EQ(bus_factor(CollectiveKind::broadcast, 4), 1);
    EXPECT_EQ(bus_factor(CollectiveKind::all_reduce, 1), 0);
}

}  // namespace
}  // namespace zeroplan
