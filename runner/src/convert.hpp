#pragma once
#include <cstddef>

#include "zeroplan/dtype.hpp"

namespace zeroplan::runner {

/// The dtypes that the host back end computes with: fp32 (and tf32, which is stored as fp32), bf16, fp16.
bool is_float(DType dtype);

/// to[i] = from[i], from `n` stored elements of `dtype`; exact.
void widen(const void* from, DType dtype, float* to, std::size_t n);
/// to[i] += from[i].
void add_widened(const void* from, DType dtype, float* to, std::size_t n);
/// to[i] = from[i], rounded to nearest even.
void narrow(const float* from, void* to, DType dtype, std::size_t n);

/// The stored element `index` elements behind `memory`.
inline std::byte* element(void* memory, DType dtype, std::size_t index) {
    return static_cast<std::byte*>(memory) + index * bytes_per_element(dtype);
}
inline const std::byte* element(const void* memory, DType dtype, std::size_t index) {
    return static_cast<const std::byte*>(memory) + index * bytes_per_element(dtype);
}

}  // namespace zeroplan::runner
