#include "optimizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "convert.hpp"

namespace zeroplan::runner {
namespace {

constexpr std::size_t tile = 1024;

void sgd(float learning_rate, float* p, const float* g, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) p[i] -= learning_rate * g[i];
}

/// torch.optim.SGD: the first step takes the gradient as momentum, which a momentum of 0 gives as well.
void sgd_momentum(const OptimizerSettings& settings, float* p, const float* g, float* m, std::size_t n) {
    const auto learning_rate = static_cast<float>(settings.learning_rate);
    const auto momentum = static_cast<float>(settings.momentum);
    for (std::size_t i = 0; i < n; ++i) {
        m[i] = momentum * m[i] + g[i];
        p[i] -= learning_rate * m[i];
    }
}

/// torch.optim.Adam and AdamW (decay decoupled from the gradient).
void adam(const OptimizerSettings& settings, float* p, const float* g, float* m, float* v, std::size_t n) {
    const auto t = static_cast<double>(settings.step);
    const double correction1 = 1 - std::pow(settings.beta1, t), correction2 = 1 - std::pow(settings.beta2, t);
    const auto step_size = static_cast<float>(settings.learning_rate / correction1);
    const auto root_correction2 = static_cast<float>(std::sqrt(correction2));
    const auto beta1 = static_cast<float>(settings.beta1), beta2 = static_cast<float>(settings.beta2);
    const auto rest1 = static_cast<float>(1 - settings.beta1), rest2 = static_cast<float>(1 - settings.beta2);
    const auto epsilon = static_cast<float>(settings.epsilon);
    const double decay = settings.kind == Optimizer::adamw ? settings.weight_decay : 0;
    const auto kept = static_cast<float>(1 - settings.learning_rate * decay);
    for (std::size_t i = 0; i < n; ++i) {
        m[i] = beta1 * m[i] + rest1 * g[i];
        v[i] = beta2 * v[i] + rest2 * g[i] * g[i];
        p[i] = p[i] * kept - step_size * m[i] / (std::sqrt(v[i]) / root_correction2 + epsilon);
    }
}

void update(const OptimizerSettings& settings, float* p, const float* g, float* m, float* v, std::size_t n) {
    switch (settings.kind) {
        case Optimizer::none:
            return;
        case Optimizer::sgd:
            return sgd(static_cast<float>(settings.learning_rate), p, g, n);
        case Optimizer::sgd_momentum:
            return sgd_momentum(settings, p, g, m, n);
        case Optimizer::adam:
        case Optimizer::adamw:
            return adam(settings, p, g, m, v, n);
        default:
            throw std::logic_error("an optimizer that the host back end lacks");
    }
}

float* behind(float* memory, std::size_t at) {
    return memory == nullptr ? nullptr : memory + at;
}

}  // namespace

void optimizer_step(const OptimizerSettings& settings, const OptimizerOperands& operands, std::size_t n) {
    std::array<float, tile> gradients, values;
    for (std::size_t at = 0; at < n; at += tile) {
        const std::size_t count = std::min(tile, n - at);
        widen(element(operands.gradients, operands.gradient_dtype, at), operands.gradient_dtype,
              gradients.data(), count);
        for (std::size_t i = 0; i < count; ++i) gradients[i] *= settings.gradient_scale;

        std::byte* stored = element(operands.parameters, operands.parameter_dtype, at);
        float* master = behind(operands.master, at);
        if (master == nullptr) {
            widen(stored, operands.parameter_dtype, values.data(), count);
            master = values.data();
        }
        update(settings, master, gradients.data(), behind(operands.momentum, at),
               behind(operands.variance, at), count);
        narrow(master, stored, operands.parameter_dtype, count);
    }
}

}  // namespace zeroplan::runner
