#include "cost/matrix_product.hpp"

#include <gtest/gtest.h>

#include "cost/constants.hpp"

namespace zeroplan::cost {
namespace {

TEST(NewtonSchulz, MultipliesThreeTimesAnIteration) {
    // 4 · 1024² · 4096 + 2 · 1024³ = 1.7179869184e10 + 2.147483648e9, whichever side is the smaller.
    EXPECT_DOUBLE_EQ(newton_schulz_flops(1024, 4096), 19'327'352'832.0);
    EXPECT_DOUBLE_EQ(newton_schulz_flops(4096, 1024), 19'327'352'832.0);
    EXPECT_DOUBLE_EQ(newton_schulz_flops(64, 64), 6.0 * 64 * 64 * 64);
}

TEST(NewtonSchulz, CostsMoreThanItsFlopsByTheProductsShapes) {
    const Constants constants;
    EXPECT_GT(newton_schulz_effective_flops(1024, 4096, constants), newton_schulz_flops(1024, 4096));
    EXPECT_DOUBLE_EQ(newton_schulz_effective_flops(1024, 4096, constants),
                     newton_schulz_effective_flops(4096, 1024, constants));
}

TEST(Fp8Cast, MovesWhatTheRecipeReads) {
    EXPECT_DOUBLE_EQ(fp8_cast_bytes(R"({"recipe":"delayed"})"), 2 + 2);
    EXPECT_DOUBLE_EQ(fp8_cast_bytes(""), 2 + 2 + 2);
    EXPECT_DOUBLE_EQ(fp8_cast_bytes(R"({"recipe":"tensorwise"})"), 6);
    EXPECT_DOUBLE_EQ(fp8_cast_bytes(R"({"recipe":"rowwise"})"), 2 * (2 + 2 + 1));
    EXPECT_DOUBLE_EQ(fp8_cast_bytes(R"({"recipe":"mxfp8"})"), 2 * (2 + 1 + 1.0 / 32));
}

}  // namespace
}  // namespace zeroplan::cost
