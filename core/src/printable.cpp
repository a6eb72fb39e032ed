#include "printable.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace zeroplan {
namespace {

struct CodePoint {
    std::uint32_t value = 0;
    std::size_t bytes = 0;  ///< 0 = no UTF-8
};

/// What stands at the beginning of `text`, by RFC 3629: no overlong forms, no surrogates, up to U+10FFFF.
CodePoint decode(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
    };
    const std::uint32_t first = byte(0);
    if (first < 0x80) return {first, 1};
    const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
    std::uint32_t value = first & (0xffU >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xc0U) != 0x80) return {};
        value = value << 6 | (byte(i) & 0x3fU);
    }
    constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool valid = value >= least[bytes] && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
    return valid ? CodePoint{value, bytes} : CodePoint{};
}

/// Embeddings, overrides and isolates of Unicode's bidirectional algorithm (UAX #9).
bool turns_direction(std::uint32_t value) {
    return (value >= 0x202a && value <= 0x202e) || (value >= 0x2066 && value <= 0x2069);
}

std::string escaped(std::uint32_t value) {
    switch (value) {
        case '\n':
            return "\\n";
        case '\r':
            return "\\r";
        case '\t':
            return "\\t";
        default:
            return value < 0x100 ? fmt::format("\\x{:02x}", value) : fmt::format("\\u{{{:x}}}", value);
    }
}

}  // namespace

std::string printable(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const CodePoint point = decode(text);
        const bool control = point.value < 0x20 || (point.value >= 0x7f && point.value < 0xa0);
        if (point.bytes == 0)
            result += escaped(static_cast<unsigned char>(text.front()));
        else if (control || turns_direction(point.value))
            result += escaped(point.value);
        else
            result += text.substr(0, point.bytes);
        text.remove_prefix(std::max<std::size_t>(point.bytes, 1));
    }
    return result;
}

std::string shortened(std::string_view text, std::size_t longest) {
    if (text.size() <= longest) return std::string(text);
    std::size_t end = longest;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
    return std::string(text.substr(0, end)) + "…";
}

std::string fixed(double number, int decimals) {
    return std::abs(number) < 1e15 ? fmt::format("{:.{}f}", number, decimals) : fmt::format("{:.3g}", number);
}

}  // namespace zeroplan
