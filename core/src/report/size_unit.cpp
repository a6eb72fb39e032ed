#include "report/size_unit.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace zeroplan {
namespace {

constexpr std::array<SizeUnit, 5> units{{{"TiB", 0x1p40, "TB", 1e12},
                                         {"GiB", 0x1p30, "GB", 1e9},
                                         {"MiB", 0x1p20, "MB", 1e6},
                                         {"KiB", 0x1p10, "kB", 1e3},
                                         {"B", 1, "B", 1}}};

std::string scaled(Bytes bytes, double size) {
    const auto count = static_cast<double>(bytes.count());
    if (size <= 1) return format_count(bytes.count());
    if (count > 0 && count / size < 0.005) return "<0.01";
    // Grouped where a smaller unit had to be kept for the sake of the other rows.
    if (count / size >= 10'000) return format_count(static_cast<std::uint64_t>(std::llround(count / size)));
    return fmt::format("{:.2f}", count / size);
}

}  // namespace

std::string SizeUnit::in_binary(Bytes bytes) const {
    return scaled(bytes, binary_size);
}

std::string SizeUnit::in_decimal(Bytes bytes) const {
    return scaled(bytes, decimal_size);
}

SizeUnit unit_for(Bytes largest) {
    const auto count = static_cast<double>(largest.count());
    for (const SizeUnit& unit : units) {
        // TiB only where GiB would be unreadable; GiB earlier than strictly due.
        const double from = unit.binary_size == 0x1p40   ? 10 * 0x1p40
                            : unit.binary_size == 0x1p30 ? 0.1 * 0x1p30
                                                         : unit.binary_size;
        if (count >= from) return unit;
    }
    return units.back();
}

}  // namespace zeroplan
