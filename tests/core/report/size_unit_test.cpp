#include "report/size_unit.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

using namespace literals;

TEST(UnitFor, IsTheLargestThatFits) {
    EXPECT_STREQ(unit_for(0_B).binary, "B");
    EXPECT_STREQ(unit_for(2_KiB).binary, "KiB");
    EXPECT_STREQ(unit_for(5_MiB).binary, "MiB");
    EXPECT_STREQ(unit_for(200_MiB).binary, "GiB");  // memory is sold in GiB
    EXPECT_STREQ(unit_for(80_GiB).decimal, "GB");
    EXPECT_STREQ(unit_for(5000_GiB).binary, "GiB");
    EXPECT_STREQ(unit_for(20'000_GiB).binary, "TiB");
}

TEST(SizeUnit, ShowsTwoDecimalsInBothFamilies) {
    const SizeUnit gib = unit_for(80_GiB);
    EXPECT_EQ(gib.in_binary(80_GiB), "80.00");
    EXPECT_EQ(gib.in_decimal(80_GiB), "85.90");
    EXPECT_EQ(gib.in_binary(0_B), "0.00");
    EXPECT_EQ(gib.in_binary(1_B), "<0.01");  // never zero for what isn't
    EXPECT_EQ(gib.in_binary(12'345_GiB), "12,345");
    EXPECT_EQ(unit_for(100_B).in_binary(1000_B), "1,000");
}

}  // namespace
}  // namespace zeroplan
