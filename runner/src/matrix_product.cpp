#include "matrix_product.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "convert.hpp"
#include "sgemm.hpp"

namespace zeroplan::runner {
namespace {

/// A stored matrix of `columns` columns, used as its transpose or not.
struct StoredMatrix {
    const void* data;
    DType dtype;
    std::size_t columns;
    bool transposed;
};

/// Rows [i, i + m), columns [j, j + n) of the matrix as it is used, widened to `to`.
FloatMatrix widen_tile(const StoredMatrix& matrix, std::size_t i, std::size_t m, std::size_t j, std::size_t n,
                       float* to) {
    if (matrix.transposed) {
        std::swap(i, j);
        std::swap(m, n);
    }
    for (std::size_t r = 0; r < m; ++r)
        widen(element(matrix.data, matrix.dtype, (i + r) * matrix.columns + j), matrix.dtype, to + r * n, n);
    return {to, n, matrix.transposed};
}

void multiply_fp32(const MatrixProduct& p) {
    auto* c = static_cast<float*>(p.c);
    sgemm(p.m, p.n, p.k, {static_cast<const float*>(p.a), p.transpose_a ? p.m : p.k, p.transpose_a},
          {static_cast<const float*>(p.b), p.transpose_b ? p.k : p.n, p.transpose_b}, p.accumulate, c, p.n);
    if (p.row == nullptr) return;
    const auto* row = static_cast<const float*>(p.row);
    for (std::size_t i = 0; i < p.m; ++i)
        for (std::size_t j = 0; j < p.n; ++j) c[i * p.n + j] += row[j];
}

/// Adds what has to be added to the tile of sums and stores it, row by row.
void store_tile(const MatrixProduct& p, std::size_t i, std::size_t m, std::size_t j, std::size_t n,
                float* sums) {
    for (std::size_t r = 0; r < m; ++r) {
        std::byte* stored = element(p.c, p.dtype, (i + r) * p.n + j);
        float* row = sums + r * n;
        if (p.accumulate) add_widened(stored, p.dtype, row, n);
        if (p.row != nullptr) add_widened(element(p.row, p.dtype, j), p.dtype, row, n);
        narrow(row, stored, p.dtype, n);
    }
}

void multiply_in_tiles(const MatrixProduct& p, std::span<float> workspace) {
    // Tiles of A and B are t × 2t, sums are t × t: 5 t² floats in all.
    const auto edge =
        static_cast<std::size_t>(std::sqrt(static_cast<double>(workspace.size()) / 5.0)) / 16 * 16;
    if (edge == 0) throw std::logic_error("a 16-bit matrix product needs a workspace");
    const std::size_t depth = 2 * edge;
    float* tile_a = workspace.data();
    float* tile_b = tile_a + edge * depth;
    float* sums = tile_b + edge * depth;

    const StoredMatrix a{p.a, p.dtype, p.transpose_a ? p.m : p.k, p.transpose_a};
    const StoredMatrix b{p.b, p.dtype, p.transpose_b ? p.k : p.n, p.transpose_b};
    for (std::size_t i = 0; i < p.m; i += edge)
        for (std::size_t j = 0; j < p.n; j += edge) {
            const std::size_t m = std::min(edge, p.m - i), n = std::min(edge, p.n - j);
            std::fill(sums, sums + m * n, 0.0F);
            for (std::size_t l = 0; l < p.k; l += depth) {
                const std::size_t k = std::min(depth, p.k - l);
                sgemm(m, n, k, widen_tile(a, i, m, l, k, tile_a), widen_tile(b, l, k, j, n, tile_b), true,
                      sums, n);
            }
            store_tile(p, i, m, j, n, sums);
        }
}

}  // namespace

void multiply(const MatrixProduct& product, std::span<float> workspace) {
    if (is_16_bit(product.dtype)) return multiply_in_tiles(product, workspace);
    multiply_fp32(product);
}

void warm_matrix_library(std::size_t largest) {
    use_one_blas_thread();
    constexpr std::size_t most = 16384, deep = 1024, thin = 16;
    const std::size_t side = std::clamp<std::size_t>(largest, 1, most), k = std::min(side, deep);
    const std::vector<float> wide(side * k, 0.0F), narrow_one(thin * k, 0.0F);
    std::vector<float> result(side * thin);
    for (const bool transposed : {false, true}) {
        const FloatMatrix tall{wide.data(), transposed ? side : k, transposed};
        const FloatMatrix flat{wide.data(), transposed ? k : side, transposed};
        sgemm(side, thin, k, tall, {narrow_one.data(), thin, false}, false, result.data(), thin);
        sgemm(thin, side, k, {narrow_one.data(), k, false}, flat, false, result.data(), side);
    }
}

}  // namespace zeroplan::runner
