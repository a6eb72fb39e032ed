#include "linear.hpp"

#include <algorithm>
#include <array>

#include "convert.hpp"
#include "matrix_product.hpp"

namespace zeroplan::runner {
namespace {

/// to (+)= sum over the rows of dy, row after row in fp32.
void sum_columns(const LinearShape& shape, const void* dy, void* to, bool accumulate) {
    std::array<float, 512> sums;
    for (std::size_t j = 0; j < shape.out; j += sums.size()) {
        const std::size_t n = std::min(sums.size(), shape.out - j);
        std::fill_n(sums.begin(), n, 0.0F);
        for (std::size_t i = 0; i < shape.rows; ++i)
            add_widened(element(dy, shape.dtype, i * shape.out + j), shape.dtype, sums.data(), n);
        std::byte* stored = element(to, shape.dtype, j);
        if (accumulate) add_widened(stored, shape.dtype, sums.data(), n);
        narrow(sums.data(), stored, shape.dtype, n);
    }
}

}  // namespace

void linear_forward(const LinearShape& shape, const void* x, const void* weight, const void* bias, void* y,
                    std::span<float> workspace) {
    multiply({.m = shape.rows,
              .n = shape.out,
              .k = shape.in,
              .transpose_b = true,
              .a = x,
              .b = weight,
              .c = y,
              .row = bias,
              .dtype = shape.dtype},
             workspace);
}

void linear_backward(const LinearShape& shape, const void* dy, const void* x, const void* weight,
                     const LinearGradients& gradients, std::span<float> workspace) {
    if (gradients.weight != nullptr)
        multiply({.m = shape.out,
                  .n = shape.in,
                  .k = shape.rows,
                  .transpose_a = true,
                  .a = dy,
                  .b = x,
                  .c = gradients.weight,
                  .accumulate = gradients.accumulate,
                  .dtype = shape.dtype},
                 workspace);
    if (gradients.bias != nullptr) sum_columns(shape, dy, gradients.bias, gradients.accumulate);
    if (gradients.x != nullptr)
        multiply({.m = shape.rows,
                  .n = shape.in,
                  .k = shape.out,
                  .a = dy,
                  .b = weight,
                  .c = gradients.x,
                  .dtype = shape.dtype},
                 workspace);
}

}  // namespace zeroplan::runner
