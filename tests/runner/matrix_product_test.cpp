#include "matrix_product.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "convert.hpp"
#include "counter_random.hpp"

namespace zeroplan::runner {
namespace {

std::vector<float> random_floats(std::size_t n, std::uint64_t stream) {
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = symmetric_uniform(random_bits(3, stream, i));
    return values;
}

std::vector<std::byte> stored(const std::vector<float>& values, DType dtype) {
    std::vector<std::byte> bytes(values.size() * bytes_per_element(dtype));
    narrow(values.data(), bytes.data(), dtype, values.size());
    return bytes;
}
std::vector<float> widened(const std::vector<std::byte>& bytes, DType dtype) {
    std::vector<float> values(bytes.size() / bytes_per_element(dtype));
    widen(bytes.data(), dtype, values.data(), values.size());
    return values;
}

struct Case {
    std::size_t m, n, k;
    bool transpose_a, transpose_b, accumulate, row;
    DType dtype;
};

class Products : public testing::TestWithParam<Case> {};

TEST_P(Products, EqualTheReferenceInFp64) {
    const Case c = GetParam();
    const auto a = stored(random_floats(c.m * c.k, 1), c.dtype),
               b = stored(random_floats(c.k * c.n, 2), c.dtype);
    auto product = stored(random_floats(c.m * c.n, 3), c.dtype);
    const auto row = stored(random_floats(c.n, 4), c.dtype);
    const auto x = widened(a, c.dtype), y = widened(b, c.dtype), before = widened(product, c.dtype),
               added = widened(row, c.dtype);
    std::vector<float> workspace(5 * 48 * 48);  // small tiles: several in every direction
    multiply({.m = c.m,
              .n = c.n,
              .k = c.k,
              .transpose_a = c.transpose_a,
              .transpose_b = c.transpose_b,
              .a = a.data(),
              .b = b.data(),
              .c = product.data(),
              .row = c.row ? row.data() : nullptr,
              .accumulate = c.accumulate,
              .dtype = c.dtype},
             workspace);
    const auto result = widened(product, c.dtype);
    const double spacing = c.dtype == DType::bf16 ? 0x1p-8 : c.dtype == DType::fp16 ? 0x1p-11 : 0x1p-22;
    for (std::size_t i = 0; i < c.m; ++i)
        for (std::size_t j = 0; j < c.n; ++j) {
            double sum = c.accumulate ? static_cast<double>(before[i * c.n + j]) : 0;
            if (c.row) sum += static_cast<double>(added[j]);
            for (std::size_t l = 0; l < c.k; ++l)
                sum += static_cast<double>(c.transpose_a ? x[l * c.m + i] : x[i * c.k + l]) *
                       static_cast<double>(c.transpose_b ? y[j * c.k + l] : y[l * c.n + j]);
            // Rounded once when it is stored, and a little in fp32 on the way.
            ASSERT_NEAR(static_cast<double>(result[i * c.n + j]), sum, std::abs(sum) * spacing + 1e-4)
                << i << " " << j;
        }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Products,
                         testing::Values(Case{7, 5, 3, false, false, false, false, DType::fp32},
                                         Case{32, 100, 100, false, true, false, true, DType::fp32},
                                         Case{100, 100, 32, true, false, true, false, DType::fp32},
                                         Case{1, 1, 1, true, true, true, true, DType::fp32},
                                         Case{130, 110, 205, false, true, false, true, DType::bf16},
                                         Case{110, 130, 97, true, false, true, false, DType::bf16},
                                         Case{49, 48, 96, false, false, false, false, DType::bf16},
                                         Case{50, 60, 70, true, true, false, false, DType::fp16},
                                         Case{4, 6, 0, false, false, false, false, DType::fp32},
                                         Case{4, 6, 0, false, false, true, false, DType::bf16},
                                         Case{0, 6, 3, false, false, false, true, DType::bf16}));

TEST(Products, Of16BitsNeedAWorkspace) {
    EXPECT_THROW(multiply({.m = 1, .n = 1, .k = 1, .dtype = DType::bf16}, {}), std::logic_error);
}

/// The same product at another place in memory has to give the same bits: stages and ranks place buffers
/// differently.
void expect_same_bits_anywhere(std::size_t m, std::size_t n, std::size_t k, bool transpose_a,
                               bool transpose_b) {
    const auto a = random_floats(m * k, 1), b = random_floats(k * n, 2);
    std::vector<float> expected;
    for (const std::size_t shift : {0UL, 1UL, 3UL, 8UL, 13UL, 31UL}) {
        std::vector<float> memory(m * k + k * n + m * n + 3 * shift + 3);
        float* x = memory.data() + shift;
        float* y = x + m * k + shift + 1;
        float* z = y + k * n + shift + 2;
        std::copy(a.begin(), a.end(), x);
        std::copy(b.begin(), b.end(), y);
        multiply({.m = m,
                  .n = n,
                  .k = k,
                  .transpose_a = transpose_a,
                  .transpose_b = transpose_b,
                  .a = x,
                  .b = y,
                  .c = z},
                 {});
        if (shift == 0) expected.assign(z, z + m * n);
        EXPECT_EQ(std::memcmp(expected.data(), z, m * n * sizeof(float)), 0)
            << m << "×" << n << "×" << k << " at " << shift;
    }
}

TEST(Products, DoNotDependOnWhereTheOperandsLie) {
    warm_matrix_library(512);
    for (const std::size_t rows : {1UL, 2UL, 26UL, 32UL, 100UL}) {
        expect_same_bits_anywhere(rows, 100, 100, false, true);
        expect_same_bits_anywhere(100, 100, rows, true, false);
        expect_same_bits_anywhere(rows, 100, 100, false, false);
    }
    expect_same_bits_anywhere(33, 517, 1030, false, true);
    expect_same_bits_anywhere(517, 129, 33, true, false);
}

}  // namespace
}  // namespace zeroplan::runner
