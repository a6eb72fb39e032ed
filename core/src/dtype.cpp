#include "zeroplan/dtype.hpp"

#include <array>
#include <utility>

namespace zeroplan {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 7> words{{{DType::fp32, "fp32"},
                                                                   {DType::tf32, "tf32"},
                                                                   {DType::fp16, "fp16"},
                                                                   {DType::bf16, "bf16"},
                                                                   {DType::fp8, "fp8"},
                                                                   {DType::int64, "int64"},
                                                                   {DType::uint8, "uint8"}}};

}  // namespace

std::string_view to_string(DType dtype) {
    for (const auto& [value, word] : words)
        if (value == dtype) return word;
    return "?";
}

std::optional<DType> dtype_from_string(std::string_view text) {
    for (const auto& [value, word] : words)
        if (word == text) return value;
    return std::nullopt;
}

}  // namespace zeroplan
