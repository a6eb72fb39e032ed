#include "sgemm.hpp"

#include <algorithm>
#include <climits>
#include <stdexcept>

#ifdef ZEROPLAN_OPENBLAS
#include <cblas.h>
#endif

namespace zeroplan::runner {
namespace {

#ifdef ZEROPLAN_OPENBLAS

blasint checked(std::size_t n) {
    if (n > static_cast<std::size_t>(INT_MAX))
        throw std::length_error("a matrix has more than 2^31 - 1 rows or columns");
    return static_cast<blasint>(n);
}

CBLAS_TRANSPOSE operation(const FloatMatrix& matrix) {
    return matrix.transposed ? CblasTrans : CblasNoTrans;
}

void product(std::size_t m, std::size_t n, std::size_t k, FloatMatrix a, FloatMatrix b, float beta, float* c,
             std::size_t c_stride) {
    cblas_sgemm(CblasRowMajor, operation(a), operation(b), checked(m), checked(n), checked(k), 1.0F, a.data,
                checked(a.stride), b.data, checked(b.stride), beta, c, checked(c_stride));
}

#else

/// Row by row of C, which stays in the cache; plain, but right everywhere.
void product(std::size_t m, std::size_t n, std::size_t k, FloatMatrix a, FloatMatrix b, float beta, float* c,
             std::size_t c_stride) {
    for (std::size_t i = 0; i < m; ++i) {
        float* row = c + i * c_stride;
        if (beta == 0.0F) std::fill(row, row + n, 0.0F);
        for (std::size_t l = 0; l < k; ++l) {
            const float x = a.transposed ? a.data[l * a.stride + i] : a.data[i * a.stride + l];
            if (b.transposed) {
                for (std::size_t j = 0; j < n; ++j) row[j] += x * b.data[j * b.stride + l];
            } else {
                for (std::size_t j = 0; j < n; ++j) row[j] += x * b.data[l * b.stride + j];
            }
        }
    }
}

#endif

}  // namespace

void sgemm(std::size_t m, std::size_t n, std::size_t k, FloatMatrix a, FloatMatrix b, bool add, float* c,
           std::size_t c_stride) {
    if (m == 0 || n == 0) return;
    if (k == 0) {  // libraries differ in what they do here
        for (std::size_t i = 0; i < m && !add; ++i) std::fill(c + i * c_stride, c + i * c_stride + n, 0.0F);
        return;
    }
    product(m, n, k, a, b, add ? 1.0F : 0.0F, c, c_stride);
}

void use_one_blas_thread() {
#ifdef ZEROPLAN_OPENBLAS
    openblas_set_num_threads(1);
#endif
}

}  // namespace zeroplan::runner
