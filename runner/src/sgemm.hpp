#pragma once
#include <cstddef>

namespace zeroplan::runner {

/// A matrix of floats, row-major, rows `stride` elements apart.
struct FloatMatrix {
    const float* data = nullptr;
    std::size_t stride = 0;
    bool transposed = false;  ///< used as its transpose
};

/// C[m × n] = a·b + beta · C, with beta 0 or 1; row-major. Uses OpenBLAS where the build found it. k = 0 is
/// allowed.
void sgemm(std::size_t m, std::size_t n, std::size_t k, FloatMatrix a, FloatMatrix b, bool add, float* c,
           std::size_t c_stride);

/// One thread: every rank has a core of its own at best.
void use_one_blas_thread();

}  // namespace zeroplan::runner
