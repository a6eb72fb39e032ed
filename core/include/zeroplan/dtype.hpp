#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace zeroplan {

/// Element types. tf32 is stored as fp32; only its matrix products differ.
enum class DType : std::uint8_t { fp32, tf32, fp16, bf16, fp8, int64, uint8 };

constexpr std::uint64_t bytes_per_element(DType dtype) {
    switch (dtype) {
        case DType::fp32:
        case DType::tf32:
            return 4;
        case DType::fp16:
        case DType::bf16:
            return 2;
        case DType::fp8:
        case DType::uint8:
            return 1;
        case DType::int64:
            return 8;
    }
    return 0;
}

/// True for the dtypes that train with fp32 master weights by default: fp16, bf16.
constexpr bool is_16_bit(DType dtype) {
    return dtype == DType::fp16 || dtype == DType::bf16;
}

/// "bf16" …; the word used in scenario files.
std::string_view to_string(DType dtype);
std::optional<DType> dtype_from_string(std::string_view word);

/// What tensors are stored in when matrix products run in `compute`: fp8 is for the products alone, the rest
/// is bf16.
constexpr DType storage_dtype(DType compute) {
    return compute == DType::fp8 ? DType::bf16 : compute;
}

}  // namespace zeroplan
