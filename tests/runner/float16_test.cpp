#include "float16.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "convert.hpp"

namespace zeroplan::runner {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Bf16, RoundsToNearestEven) {
    EXPECT_EQ(bf16_from_float(1.0F), 0x3f80);
    EXPECT_EQ(bf16_from_float(1.0F + 0x1p-8F), 0x3f80);             // a tie: to the even below
    EXPECT_EQ(bf16_from_float(1.0F + 0x1p-7F + 0x1p-8F), 0x3f82);   // a tie: to the even above
    EXPECT_EQ(bf16_from_float(1.0F + 0x1p-8F + 0x1p-20F), 0x3f81);  // above the tie
    EXPECT_EQ(bf16_from_float(-1.0F - 0x1p-8F - 0x1p-20F), 0xbf81);
    EXPECT_EQ(bf16_from_float(std::numeric_limits<float>::max()), 0x7f80);  // rounds to infinity
    EXPECT_EQ(bf16_from_float(-infinity), 0xff80);
    EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(std::nanf("")))));
    EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(std::bit_cast<float>(0x7f800001U)))));
}

TEST(Fp16, RoundsToNearestEven) {
    EXPECT_EQ(fp16_from_float(1.0F), 0x3c00);
    EXPECT_EQ(fp16_from_float(1.0F + 0x1p-11F), 0x3c00);
    EXPECT_EQ(fp16_from_float(1.0F + 0x1p-10F + 0x1p-11F), 0x3c02);
    EXPECT_EQ(fp16_from_float(65504.0F), 0x7bff);
    EXPECT_EQ(fp16_from_float(65519.9F), 0x7bff);
    EXPECT_EQ(fp16_from_float(65520.0F), 0x7c00);
    EXPECT_EQ(fp16_from_float(-infinity), 0xfc00);
    EXPECT_EQ(fp16_from_float(0x1p-24F), 0x0001);  // the smallest subnormal
    EXPECT_EQ(fp16_from_float(0x1p-25F), 0x0000);  // a tie: to zero
    EXPECT_EQ(fp16_from_float(0x1.8p-25F), 0x0001);
    EXPECT_EQ(fp16_from_float(0x1p-14F - 0x1p-26F), 0x0400);  // rounds up into the normal numbers
    EXPECT_EQ(fp16_from_float(-0.0F), 0x8000);
    EXPECT_TRUE(std::isnan(float_from_fp16(fp16_from_float(std::nanf("")))));
}

TEST(Float16, KeepsEveryStoredNumber) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto stored = static_cast<std::uint16_t>(bits);
        const float bf16 = float_from_bf16(stored), fp16 = float_from_fp16(stored);
        EXPECT_TRUE(std::isnan(bf16) || bf16_from_float(bf16) == stored);
        EXPECT_TRUE(std::isnan(fp16) || fp16_from_float(fp16) == stored);
    }
}

TEST(Fp16, WidensExactly) {
    EXPECT_EQ(float_from_fp16(0x3555), 0.333251953125F);
    EXPECT_EQ(float_from_fp16(0x0001), 0x1p-24F);
    EXPECT_EQ(float_from_fp16(0x03ff), 0x1.ff8p-15F);
    EXPECT_EQ(float_from_fp16(0x7c00), infinity);
    EXPECT_EQ(float_from_fp16(0xc000), -2.0F);
}

TEST(Convert, WidensAddsAndNarrowsArrays) {
    const std::vector<float> values{1.0F, -2.5F, 3.0F + 0x1p-9F};
    std::vector<std::uint16_t> stored(3);
    std::vector<float> widened(3, 10.0F);
    narrow(values.data(), stored.data(), DType::bf16, 3);
    add_widened(stored.data(), DType::bf16, widened.data(), 3);
    EXPECT_EQ(widened, (std::vector<float>{11.0F, 7.5F, 13.0F}));
    widen(stored.data(), DType::bf16, widened.data(), 3);
    EXPECT_EQ(widened, (std::vector<float>{1.0F, -2.5F, 3.0F}));
    EXPECT_FALSE(is_float(DType::int64));
    EXPECT_THROW(widen(stored.data(), DType::fp8, widened.data(), 1), std::logic_error);
}

}  // namespace
}  // namespace zeroplan::runner
