#include "activation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "convert.hpp"

namespace zeroplan::runner {
namespace {

constexpr std::size_t tile = 1024;
constexpr float inverse_sqrt_2 = 0.70710678F, inverse_sqrt_2_pi = 0.39894228F;

float normal_cdf(float x) {
    return 0.5F * (1.0F + std::erf(x * inverse_sqrt_2));
}
float sigmoid(float x) {
    return 1.0F / (1.0F + std::exp(-x));
}

float value(ActivationFunction function, float x) {
    switch (function) {
        case ActivationFunction::none:
            return x;
        case ActivationFunction::relu:
            return x > 0.0F ? x : 0.0F;
        case ActivationFunction::gelu:
            return x * normal_cdf(x);
        case ActivationFunction::silu:
            return x * sigmoid(x);
        case ActivationFunction::tanh:
            return std::tanh(x);
        case ActivationFunction::squared_relu:
            return x > 0.0F ? x * x : 0.0F;
    }
    throw std::logic_error("an activation function without a value");
}

/// f'(x), from y = f(x) where `s` is the output.
float slope(ActivationFunction function, float s, bool is_output) {
    switch (function) {
        case ActivationFunction::none:
            return 1.0F;
        case ActivationFunction::relu:
            return s > 0.0F ? 1.0F : 0.0F;
        case ActivationFunction::gelu:
            return normal_cdf(s) + s * inverse_sqrt_2_pi * std::exp(-0.5F * s * s);
        case ActivationFunction::silu: {
            const float p = sigmoid(s);
            return p * (1.0F + s * (1.0F - p));
        }
        case ActivationFunction::tanh: {
            const float y = is_output ? s : std::tanh(s);
            return 1.0F - y * y;
        }
        case ActivationFunction::squared_relu:
            return s > 0.0F ? 2.0F * s : 0.0F;
    }
    throw std::logic_error("an activation function without a slope");
}

}  // namespace

void activation_forward(ActivationFunction function, const void* x, void* y, std::size_t n, DType dtype) {
    std::array<float, tile> values;
    for (std::size_t at = 0; at < n; at += tile) {
        const std::size_t count = std::min(tile, n - at);
        widen(element(x, dtype, at), dtype, values.data(), count);
        for (std::size_t i = 0; i < count; ++i) values[i] = value(function, values[i]);
        narrow(values.data(), element(y, dtype, at), dtype, count);
    }
}

void activation_backward(ActivationFunction function, const void* dy, const void* saved, bool saved_is_output,
                         void* dx, std::size_t n, DType dtype) {
    if (saved_is_output && !output_suffices(function))
        throw std::logic_error("backward of this activation function needs its input");
    std::array<float, tile> gradients, kept;
    for (std::size_t at = 0; at < n; at += tile) {
        const std::size_t count = std::min(tile, n - at);
        widen(element(dy, dtype, at), dtype, gradients.data(), count);
        if (function != ActivationFunction::none) {
            widen(element(saved, dtype, at), dtype, kept.data(), count);
            for (std::size_t i = 0; i < count; ++i) gradients[i] *= slope(function, kept[i], saved_is_output);
        }
        narrow(gradients.data(), element(dx, dtype, at), dtype, count);
    }
}

bool output_suffices(ActivationFunction function) {
    return function == ActivationFunction::none || function == ActivationFunction::relu ||
           function == ActivationFunction::tanh;
}

}  // namespace zeroplan::runner
