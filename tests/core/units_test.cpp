#include "zeroplan/units.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

using namespace literals;

static_assert(80_GB < 80_GiB);
static_assert(2 * 1_KiB == 2048_B);
static_assert(round_up(513_B, 512_B) == 1_KiB);

TEST(Bytes, RefusesToWrapAround) {
    const Bytes most{~0ULL};
    EXPECT_THROW(most + 1_B, Error);
    EXPECT_THROW(2 * most, Error);
    EXPECT_THROW(1_B - 2_B, Error);
    EXPECT_THROW(checked_product(1ULL << 40, 1ULL << 40), Error);
    EXPECT_THROW(round_up(~0ULL, 512), Error);
}

TEST(Bytes, RoundsUpToAMultiple) {
    EXPECT_EQ(round_up(0, 512), 0U);
    EXPECT_EQ(round_up(1, 512), 512U);
    EXPECT_EQ(round_up(512, 512), 512U);
}

TEST(Bytes, ArePrintedInBothUnitFamilies) {
    EXPECT_EQ(format_bytes(Bytes{84943715697}), "79.11 GiB (84.94 GB)");
    EXPECT_EQ(format_exact(Bytes{84943715697}), "84,943,715,697 B");
    EXPECT_EQ(format_gib(17_B), "17 B");
    EXPECT_EQ(format_gib(Bytes{5 << 20}), "5.00 MiB");
    EXPECT_EQ(format_bytes(512_B), "512 B");
}

TEST(Bytes, CountsAndTimesReadWell) {
    EXPECT_EQ(format_count(8030261248), "8,030,261,248");
    EXPECT_EQ(format_count(999), "999");
    EXPECT_EQ(format_seconds(1.23456), "1.235 s");
    EXPECT_EQ(format_seconds(0.0123), "12.3 ms");
    EXPECT_EQ(format_seconds(4.5e-6), "4.5 µs");
    EXPECT_EQ(format_seconds(0.99949), "999 ms");
    EXPECT_EQ(format_seconds(0.9996), "1.000 s");
    EXPECT_EQ(format_seconds(0.0009996), "1 ms");
    EXPECT_EQ(format_seconds(0), "0.000 s");
}

TEST(Error, SaysWhereWhatAndHowToGoOn) {
    const Error error(ErrorCode::invalid_input, "hidden_size 100 is not divisible by 3 heads",
                      "choose 96 or 102", {"", "/model/hidden_size"});
    EXPECT_STREQ(
        error.in_file("a.json").what(),
        "a.json: /model/hidden_size: hidden_size 100 is not divisible by 3 heads\n  choose 96 or 102");
    EXPECT_EQ(error.exit_status(), 2);
    EXPECT_EQ(Error(ErrorCode::run_failed, "rank 3 died").exit_status(), 3);
}

}  // namespace
}  // namespace zeroplan
