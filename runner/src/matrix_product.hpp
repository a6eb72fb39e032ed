#pragma once
#include <cstddef>
#include <span>

#include "zeroplan/dtype.hpp"

namespace zeroplan::runner {

/// C = op(A)·op(B), or C += …, with an optional row added to every row of C. All matrices are dense,
/// row-major and of one dtype; op(A) is m × k, op(B) is k × n, C is m × n. Products are summed in fp32.
struct MatrixProduct {
    std::size_t m = 0, n = 0, k = 0;
    bool transpose_a = false, transpose_b = false;
    const void* a = nullptr;
    const void* b = nullptr;
    void* c = nullptr;
    const void* row = nullptr;  ///< n elements: a bias
    bool accumulate = false;
    DType dtype = DType::fp32;
};

/// 16-bit operands are widened tile by tile in `workspace`; the result depends on its size, and not on where
/// anything lies. fp32 needs none. Throws std::logic_error if a 16-bit product has less than one row of tiles
/// to work with.
void multiply(const MatrixProduct& product, std::span<float> workspace);

/// Lets the matrix library take the memory it works with, for products whose sides are at most `largest`, and
/// keeps it to one thread.
void warm_matrix_library(std::size_t largest);

}  // namespace zeroplan::runner
