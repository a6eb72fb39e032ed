#include "zeroplan/units.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "printable.hpp"

namespace zeroplan {
namespace {

struct Unit {
    double size;
    const char* name;
};

/// Three significant digits in the largest unit that is not above the value.
std::string in_largest_unit(double value, const std::array<Unit, 6>& units) {
    const Unit* best = &units.back();
    for (const Unit& unit : units) {
        if (value >= unit.size) {
            best = &unit;
            break;
        }
    }
    const double scaled = value / best->size;
    if (best->size == 1.0) return fmt::format("{:.0f} {}", scaled, best->name);
    return fmt::format("{:.{}f} {}", scaled, scaled >= 100 ? 1 : 2, best->name);
}

constexpr std::array<Unit, 6> binary_units{
    {{0x1p50, "PiB"}, {0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}}};
constexpr std::array<Unit, 6> decimal_units{
    {{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}}};

}  // namespace

std::string format_gib(Bytes bytes) {
    return in_largest_unit(static_cast<double>(bytes.count()), binary_units);
}

std::string format_bytes(Bytes bytes) {
    if (bytes.count() < 1024) return format_gib(bytes);
    return fmt::format("{} ({})", format_gib(bytes),
                       in_largest_unit(static_cast<double>(bytes.count()), decimal_units));
}

std::string format_count(std::uint64_t count) {
    std::string digits = fmt::format("{}", count);
    for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, ",");
    return digits;
}

std::string format_exact(Bytes bytes) {
    return format_count(bytes.count()) + " B";
}

std::string format_seconds(double seconds) {
    const double size = std::abs(seconds);
    constexpr double rounds_to_one = 0.9995;  // with three digits, so never "1e+03" of the smaller unit
    if (size >= rounds_to_one || size == 0) return fixed(seconds, 3) + " s";
    if (size >= rounds_to_one * 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
    return fmt::format("{:.3g} µs", seconds * 1e6);
}

}  // namespace zeroplan
