#include "loss.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "convert.hpp"

namespace zeroplan::runner {
namespace {

constexpr std::size_t tile = 1024;

/// Calls use(first index, values, count) for one tile of a stored array after the other.
template <typename Use>
void for_tiles(const void* stored, DType dtype, std::size_t n, Use use) {
    std::array<float, tile> values;
    for (std::size_t at = 0; at < n; at += tile) {
        const std::size_t count = std::min(tile, n - at);
        widen(element(stored, dtype, at), dtype, values.data(), count);
        use(at, values.data(), count);
    }
}

/// log Σ exp(x) = shift + log(scale), without overflow.
struct LogSum {
    float shift = -std::numeric_limits<float>::infinity();
    double scale = 0;
    double value() const { return static_cast<double>(shift) + std::log(scale); }
};

LogSum log_sum(const void* row, DType dtype, std::size_t columns) {
    LogSum sum;
    for_tiles(row, dtype, columns, [&](std::size_t, const float* x, std::size_t n) {
        sum.shift = std::max(sum.shift, *std::max_element(x, x + n));
    });
    for_tiles(row, dtype, columns, [&](std::size_t, const float* x, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) sum.scale += static_cast<double>(std::exp(x[i] - sum.shift));
    });
    return sum;
}

float stored_value(const void* row, DType dtype, std::size_t index) {
    float value = 0;
    widen(element(row, dtype, index), dtype, &value, 1);
    return value;
}

}  // namespace

double mse_forward(const void* prediction, const void* target, std::size_t rows, std::size_t columns,
                   DType dtype) {
    double sum = 0;
    std::array<float, tile> wanted;
    for_tiles(prediction, dtype, rows * columns, [&](std::size_t at, const float* x, std::size_t n) {
        widen(element(target, dtype, at), dtype, wanted.data(), n);
        for (std::size_t i = 0; i < n; ++i) {
            const double difference = static_cast<double>(x[i]) - static_cast<double>(wanted[i]);
            sum += difference * difference;
        }
    });
    return columns == 0 ? 0 : sum / static_cast<double>(columns);
}

void mse_backward(const void* prediction, const void* target, void* gradient, std::size_t rows,
                  std::size_t columns, DType dtype) {
    const float scale = 2.0F / static_cast<float>(rows * columns);
    std::array<float, tile> wanted;
    for_tiles(prediction, dtype, rows * columns, [&](std::size_t at, float* x, std::size_t n) {
        widen(element(target, dtype, at), dtype, wanted.data(), n);
        for (std::size_t i = 0; i < n; ++i) x[i] = (x[i] - wanted[i]) * scale;
        narrow(x, element(gradient, dtype, at), dtype, n);
    });
}

double cross_entropy_forward(const void* logits, const std::int64_t* labels, std::size_t rows,
                             std::size_t columns, DType dtype) {
    double sum = 0;
    for (std::size_t r = 0; r < rows; ++r) {
        const void* row = element(logits, dtype, r * columns);
        sum += log_sum(row, dtype, columns).value() -
               static_cast<double>(stored_value(row, dtype, static_cast<std::size_t>(labels[r])));
    }
    return sum;
}

void cross_entropy_backward(const void* logits, const std::int64_t* labels, void* gradient, std::size_t rows,
                            std::size_t columns, DType dtype) {
    const float scale = 1.0F / static_cast<float>(rows);
    for (std::size_t r = 0; r < rows; ++r) {
        const void* row = element(logits, dtype, r * columns);
        const LogSum sum = log_sum(row, dtype, columns);
        const auto norm = static_cast<float>(1.0 / sum.scale);
        const auto label = static_cast<std::size_t>(labels[r]);
        for_tiles(row, dtype, columns, [&](std::size_t at, float* x, std::size_t n) {
            for (std::size_t i = 0; i < n; ++i)
                x[i] = (std::exp(x[i] - sum.shift) * norm - (at + i == label ? 1.0F : 0.0F)) * scale;
            narrow(x, element(gradient, dtype, r * columns + at), dtype, n);
        });
    }
}

}  // namespace zeroplan::runner
