#include "optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "float16.hpp"

namespace zeroplan::runner {
namespace {

TEST(Optimizer, SgdStepsAgainstTheMeanGradient) {
    std::vector<float> p{1, 2};
    const std::vector<float> g{4, -8};
    optimizer_step({.kind = Optimizer::sgd, .learning_rate = 0.5, .gradient_scale = 0.25F},
                   {.parameters = p.data(), .gradients = g.data()}, 2);
    EXPECT_EQ(p, (std::vector<float>{0.5F, 3}));  // 1 - 0.5 · 4/4, 2 + 0.5 · 8/4
}

TEST(Optimizer, MomentumAddsUp) {
    std::vector<float> p{0}, m{0};
    const std::vector<float> g{1};
    for (const float expected : {-1.0F, -2.9F, -5.61F}) {  // velocities 1, 1.9, 2.71
        optimizer_step({.kind = Optimizer::sgd_momentum, .learning_rate = 1},
                       {.parameters = p.data(), .gradients = g.data(), .momentum = m.data()}, 1);
        EXPECT_NEAR(p[0], expected, 1e-6F);
    }
}

TEST(Optimizer, AdamMovesByTheLearningRateAtFirst) {
    std::vector<float> p{1, 1}, m{0, 0}, v{0, 0};
    const std::vector<float> g{1e-3F, -50};
    OptimizerSettings settings{.kind = Optimizer::adam, .learning_rate = 0.1};
    const OptimizerOperands operands{
        .parameters = p.data(), .gradients = g.data(), .momentum = m.data(), .variance = v.data()};
    optimizer_step(settings, operands, 2);
    EXPECT_NEAR(p[0], 0.9F, 1e-5F);
    EXPECT_NEAR(p[1], 1.1F, 1e-5F);
    EXPECT_NEAR(m[1], -5.0F, 1e-5F);  // 0.1 · g
    EXPECT_NEAR(v[1], 2.5F, 1e-5F);   // 0.001 · g²
    settings.step = 2;
    optimizer_step(settings, operands, 2);  // the same gradient again: the same corrected moments
    EXPECT_NEAR(p[0], 0.8F, 1e-5F);
    EXPECT_NEAR(p[1], 1.2F, 1e-5F);
}

TEST(Optimizer, AdamwDecaysTheParameterItself) {
    std::vector<float> p{2}, m{0}, v{0};
    const std::vector<float> g{0};
    optimizer_step(
        {.kind = Optimizer::adamw, .learning_rate = 0.1, .weight_decay = 0.5},
        {.parameters = p.data(), .gradients = g.data(), .momentum = m.data(), .variance = v.data()}, 1);
    EXPECT_NEAR(p[0], 1.9F, 1e-6F);  // 2 · (1 - 0.1 · 0.5)
}

TEST(Optimizer, KeepsInTheMasterWhatTheStoredParameterLoses) {
    std::vector<std::uint16_t> p{bf16_from_float(1)}, g{bf16_from_float(1)};
    std::vector<float> master{1};
    for (int step = 0; step < 4; ++step)
        optimizer_step({.kind = Optimizer::sgd, .learning_rate = 0x1p-10},
                       {.parameters = p.data(),
                        .parameter_dtype = DType::bf16,
                        .gradients = g.data(),
                        .gradient_dtype = DType::bf16,
                        .master = master.data()},
                       1);
    EXPECT_EQ(master[0], 1 - 0x1p-8F);  // four steps of 2^-10, each too small for bf16 near 1
    EXPECT_EQ(float_from_bf16(p[0]), 1 - 0x1p-8F);
}

TEST(Optimizer, DoesNotDependOnTheCut) {
    constexpr std::size_t n = 3000;
    std::vector<float> g(n), whole(n, 1), cut(n, 1), m1(n, 0), m2(n, 0), v1(n, 0), v2(n, 0);
    for (std::size_t i = 0; i < n; ++i) g[i] = std::sin(static_cast<float>(i));
    const OptimizerSettings settings{
        .kind = Optimizer::adamw, .learning_rate = 0.01, .gradient_scale = 1.0F / 3};
    optimizer_step(
        settings,
        {.parameters = whole.data(), .gradients = g.data(), .momentum = m1.data(), .variance = v1.data()}, n);
    for (std::size_t at = 0; at < n; at += 777) {
        const std::size_t count = std::min<std::size_t>(777, n - at);
        optimizer_step(settings,
                       {.parameters = cut.data() + at,
                        .gradients = g.data() + at,
                        .momentum = m2.data() + at,
                        .variance = v2.data() + at},
                       count);
    }
    EXPECT_EQ(whole, cut);
    EXPECT_EQ(v1, v2);
}

}  // namespace
}  // namespace zeroplan::runner
