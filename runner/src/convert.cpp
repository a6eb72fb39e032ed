#include "convert.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

#include "float16.hpp"

namespace zeroplan::runner {
namespace {

/// Calls `use` with the stored array and the function that widens one of its elements.
template <typename Use>
void with_stored(const void* from, DType dtype, Use use) {
    switch (dtype) {
        case DType::fp32:
        case DType::tf32:
            return use(static_cast<const float*>(from), [](float x) { return x; });
        case DType::bf16:
            return use(static_cast<const std::uint16_t*>(from), float_from_bf16);
        case DType::fp16:
            return use(static_cast<const std::uint16_t*>(from), float_from_fp16);
        default:
            throw std::logic_error("no arithmetic in " + std::string(to_string(dtype)));
    }
}

}  // namespace

bool is_float(DType dtype) {
    return dtype == DType::fp32 || dtype == DType::tf32 || is_16_bit(dtype);
}

void widen(const void* from, DType dtype, float* to, std::size_t n) {
    with_stored(from, dtype, [=](const auto* stored, auto widened) {
        for (std::size_t i = 0; i < n; ++i) to[i] = widened(stored[i]);
    });
}

void add_widened(const void* from, DType dtype, float* to, std::size_t n) {
    with_stored(from, dtype, [=](const auto* stored, auto widened) {
        for (std::size_t i = 0; i < n; ++i) to[i] += widened(stored[i]);
    });
}

void narrow(const float* from, void* to, DType dtype, std::size_t n) {
    switch (dtype) {
        case DType::fp32:
        case DType::tf32:
            if (n != 0) std::memmove(to, from, n * sizeof(float));
            return;
        case DType::bf16:
            for (std::size_t i = 0; i < n; ++i) static_cast<std::uint16_t*>(to)[i] = bf16_from_float(from[i]);
            return;
        case DType::fp16:
            for (std::size_t i = 0; i < n; ++i) static_cast<std::uint16_t*>(to)[i] = fp16_from_float(from[i]);
            return;
        default:
            throw std::logic_error("no arithmetic in " + std::string(to_string(dtype)));
    }
}

}  // namespace zeroplan::runner
