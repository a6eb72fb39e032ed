#pragma once
#include <bit>
#include <cstdint>

namespace zeroplan::runner {

/// The 16-bit formats: storage only, all arithmetic is fp32. Conversions round to nearest, ties to even; NaN
/// stays NaN.
constexpr float float_from_bf16(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr std::uint16_t bf16_from_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;  // rounding could turn it into infinity
    return static_cast<std::uint16_t>((is_nan ? bits | 0x400000U : rounded) >> 16);
}

constexpr float float_from_fp16(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t rest = static_cast<std::uint32_t>(bits & 0x7fffU) << 13;
    if (rest >= 0x0f800000U) return std::bit_cast<float>(sign | (rest + 0x70000000U));  // infinity, NaN
    // Exponents differ by 112; the product is exact and makes subnormals come out right.
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * 0x1p112F));
}

constexpr std::uint16_t fp16_from_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U, magnitude = bits & 0x7fffffffU;
    std::uint32_t result = 0;
    if (magnitude > 0x7f800000U) {
        result = 0x7e00U;  // NaN
    } else if (magnitude >= 0x477ff000U) {
        result = 0x7c00U;  // 65520 and above round to infinity
    } else if (magnitude < 0x38800000U) {
        // Below 2^-14: adding 1/2 lets the addition itself round at 2^-24, the spacing of subnormals.
        result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
    } else {
        result = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
    }
    return static_cast<std::uint16_t>(sign | result);
}

}  // namespace zeroplan::runner
