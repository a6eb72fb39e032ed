#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "activation.hpp"
#include "counter_random.hpp"
#include "linear.hpp"
#include "loss.hpp"

namespace zeroplan::runner {
namespace {

using Floats = std::vector<float>;

Floats random_floats(std::size_t n, std::uint64_t stream) {
    Floats values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = 2.0F * symmetric_uniform(random_bits(5, stream, i));
    return values;
}

/// The slope of `value` along x[i], from both sides.
double finite_difference(const std::function<double()>& value, float& x) {
    const float before = x, step = 1e-2F;
    x = before + step;
    const double above = value();
    x = before - step;
    const double below = value();
    x = before;
    return (above - below) / (2 * static_cast<double>(step));
}

/// A weighted sum, so that every output has its own gradient.
double weighted_sum(const Floats& y, const Floats& weights) {
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i)
        sum += static_cast<double>(y[i]) * static_cast<double>(weights[i]);
    return sum;
}

TEST(Linear, BackwardIsTheSlopeOfForward) {
    const LinearShape shape{5, 4, 3, DType::fp32};
    Floats x = random_floats(20, 1), weight = random_floats(12, 2), bias = random_floats(3, 3), y(15);
    const Floats dy = random_floats(15, 4);
    const auto value = [&] {
        linear_forward(shape, x.data(), weight.data(), bias.data(), y.data(), {});
        return weighted_sum(y, dy);
    };
    Floats dx(20), dweight(12), dbias(3);
    linear_backward(shape, dy.data(), x.data(), weight.data(),
                    {.x = dx.data(), .weight = dweight.data(), .bias = dbias.data()}, {});
    for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_NEAR(static_cast<double>(dx[i]), finite_difference(value, x[i]), 1e-3);
    for (std::size_t i = 0; i < weight.size(); ++i)
        EXPECT_NEAR(static_cast<double>(dweight[i]), finite_difference(value, weight[i]), 1e-3);
    for (std::size_t i = 0; i < bias.size(); ++i)
        EXPECT_NEAR(static_cast<double>(dbias[i]), finite_difference(value, bias[i]), 1e-3);
}

TEST(Linear, AddsToGradientsIfAsked) {
    const LinearShape shape{2, 2, 1, DType::fp32};
    const Floats x{1, 2, 3, 4}, weight{1, 1}, dy{1, 10};
    Floats dweight{100, 200}, dbias{1000};
    linear_backward(shape, dy.data(), x.data(), weight.data(),
                    {.weight = dweight.data(), .bias = dbias.data(), .accumulate = true}, {});
    EXPECT_EQ(dweight, (Floats{131, 242}));
    EXPECT_EQ(dbias, (Floats{1011}));
}

TEST(Linear, HasNoGradientWithoutRows) {
    Floats dweight{1, 2}, dbias{3};
    const Floats nothing(1);
    linear_backward({0, 2, 1, DType::fp32}, nothing.data(), nothing.data(), nothing.data(),
                    {.weight = dweight.data(), .bias = dbias.data()}, {});
    EXPECT_EQ(dweight, (Floats{0, 0}));
    EXPECT_EQ(dbias, (Floats{0}));
}

class Activations : public testing::TestWithParam<ActivationFunction> {};

TEST_P(Activations, BackwardIsTheSlopeOfForward) {
    // 1500 values: more than one tile. None lies so close to 0 that relu's kink matters.
    Floats x = random_floats(1500, 7), y(1500), dx(1500);
    for (float& value : x)
        if (std::abs(value) < 0.02F) value = 0.5F;
    const Floats dy = random_floats(1500, 8);
    activation_forward(GetParam(), x.data(), y.data(), x.size(), DType::fp32);
    activation_backward(GetParam(), dy.data(), x.data(), false, dx.data(), x.size(), DType::fp32);
    for (std::size_t i = 0; i < x.size(); ++i) {
        float at = x[i], out = 0;
        const auto value = [&] {
            activation_forward(GetParam(), &at, &out, 1, DType::fp32);
            return static_cast<double>(out);
        };
        EXPECT_NEAR(static_cast<double>(dx[i]), static_cast<double>(dy[i]) * finite_difference(value, at),
                    1e-3);
    }
    if (!output_suffices(GetParam())) return;
    Floats from_output(1500);
    activation_backward(GetParam(), dy.data(), y.data(), true, from_output.data(), x.size(), DType::fp32);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(from_output[i], dx[i], 1e-5F);
}

INSTANTIATE_TEST_SUITE_P(All, Activations,
                         testing::Values(ActivationFunction::none, ActivationFunction::relu,
                                         ActivationFunction::gelu, ActivationFunction::silu,
                                         ActivationFunction::tanh, ActivationFunction::squared_relu));

TEST(Activation, HasTheTextbooksValues) {
    const Floats x{-1, 0, 1};
    Floats y(3);
    activation_forward(ActivationFunction::gelu, x.data(), y.data(), 3, DType::fp32);
    EXPECT_NEAR(y[0], -0.158655F, 1e-6F);  // x·Φ(x), Φ(-1) = 0.158655
    EXPECT_EQ(y[1], 0.0F);
    EXPECT_NEAR(y[2], 0.841345F, 1e-6F);
    activation_forward(ActivationFunction::silu, x.data(), y.data(), 3, DType::fp32);
    EXPECT_NEAR(y[2], 0.731059F, 1e-6F);
    EXPECT_THROW(
        activation_backward(ActivationFunction::gelu, x.data(), x.data(), true, y.data(), 3, DType::fp32),
        std::logic_error);
}

TEST(MeanSquaredError, HasValueAndGradient) {
    const Floats prediction{1, 2, 3, 4}, target{1, 0, 3, 8};
    // Samples (0² + 2²)/2 = 2 and (0² + 4²)/2 = 8; the mean's gradient is 2·difference/4.
    EXPECT_EQ(mse_forward(prediction.data(), target.data(), 2, 2, DType::fp32), 10.0);
    Floats gradient(4);
    mse_backward(prediction.data(), target.data(), gradient.data(), 2, 2, DType::fp32);
    EXPECT_EQ(gradient, (Floats{0, 1, 0, -2}));
    EXPECT_EQ(mse_forward(prediction.data(), target.data(), 0, 2, DType::fp32), 0.0);
}

TEST(CrossEntropy, HasValueAndGradient) {
    // Equal logits: log 4. Far apart: the label's own is certain, the other one costs the distance.
    const Floats logits{3, 3, 3, 3, 200, 0, 0, 0, 0, 500, 0, 0};
    const std::vector<std::int64_t> labels{2, 0, 3};
    EXPECT_NEAR(cross_entropy_forward(logits.data(), labels.data(), 3, 4, DType::fp32),
                std::log(4.0) + 0 + 500, 1e-6);
    Floats gradient(12);
    cross_entropy_backward(logits.data(), labels.data(), gradient.data(), 3, 4, DType::fp32);
    const Floats expected{0.25F, 0.25F, -0.75F, 0.25F, 0, 0, 0, 0, 0, 1, 0, -1};
    for (std::size_t i = 0; i < 12; ++i) EXPECT_NEAR(gradient[i], expected[i] / 3.0F, 1e-7F) << i;
}

TEST(CrossEntropy, GradientIsTheSlopeOfTheMean) {
    const std::size_t rows = 3, columns = 1100;
    Floats logits = random_floats(rows * columns, 9), gradient(rows * columns);
    const std::vector<std::int64_t> labels{0, 1050, 7};
    const auto value = [&] {
        return cross_entropy_forward(logits.data(), labels.data(), rows, columns, DType::fp32) / 3;
    };
    cross_entropy_backward(logits.data(), labels.data(), gradient.data(), rows, columns, DType::fp32);
    for (const std::size_t i : {0UL, 1UL, 1100UL + 1050UL, 2UL * 1100UL + 7UL, 2UL * 1100UL + 1099UL})
        EXPECT_NEAR(static_cast<double>(gradient[i]), finite_difference(value, logits[i]), 1e-4) << i;
}

TEST(CrossEntropy, MayOverwriteItsLogits) {
    Floats logits = random_floats(8, 10), apart(8);
    const std::vector<std::int64_t> labels{3, 0};
    cross_entropy_backward(logits.data(), labels.data(), apart.data(), 2, 4, DType::fp32);
    cross_entropy_backward(logits.data(), labels.data(), logits.data(), 2, 4, DType::fp32);
    EXPECT_EQ(logits, apart);
}

}  // namespace
}  // namespace zeroplan::runner
