#pragma once
#include <cstddef>
#include <span>

#include "zeroplan/dtype.hpp"

namespace zeroplan::runner {

/// y = x·Wᵀ + b on `rows` rows; W is [out, in] as PyTorch registers it. No bias: nullptr.
struct LinearShape {
    std::size_t rows = 0, in = 0, out = 0;
    DType dtype = DType::fp32;
};

void linear_forward(const LinearShape& shape, const void* x, const void* weight, const void* bias, void* y,
                    std::span<float> workspace);

/// What backward of a linear writes; absent ones are nullptr. dW and db are overwritten, or added to.
struct LinearGradients {
    void* x = nullptr;
    void* weight = nullptr;
    void* bias = nullptr;
    bool accumulate = false;
};
/// dx = dy·W, dW = dyᵀ·x, db = column sums of dy.
void linear_backward(const LinearShape& shape, const void* dy, const void* x, const void* weight,
                     const LinearGradients& gradients, std::span<float> workspace);

}  // namespace zeroplan::runner
