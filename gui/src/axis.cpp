#include "zeroplan/gui/axis.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "zeroplan/gui/text.hpp"

namespace zeroplan::gui {

namespace {

struct Unit {
    double size;
    const char* suffix;
};

// The first unit that is not larger than `value`; the last one otherwise.
template <std::size_t N>
Unit unit_for(double value, const std::array<Unit, N>& units) {
    const auto fits = [&](const Unit& u) { return u.size <= value; };
    const auto found = std::find_if(units.begin(), units.end(), fits);
    return found == units.end() ? units.back() : *found;
}

std::vector<Tick> ticks(double begin, double end, double step, Unit unit) {
    std::vector<Tick> marks;
    const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step / unit.size) - 1e-9)));
    const auto first = static_cast<long long>(std::ceil(begin / step - 1e-9));
    const auto last = static_cast<long long>(std::floor(end / step + 1e-9));
    for (auto i = first; i <= last; ++i) {
        const double at = static_cast<double>(i) * step;
        marks.push_back(
            {at, QString("%1 %2").arg(at / unit.size, 0, 'f', decimals).arg(QString::fromUtf8(unit.suffix))});
    }
    return marks;
}

}  // namespace

double nice_step(double least) {
    if (!(least > 0)) return 1;
    const double decade = std::pow(10.0, std::floor(std::log10(least)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (factor * decade >= least * (1 - 1e-12)) return factor * decade;
    return 10 * decade;
}

std::vector<Tick> byte_ticks(double top, int most) {
    static constexpr std::array<Unit, 5> units{
        {{0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}}};
    if (!(top > 0)) return {};
    const Unit unit = unit_for(top, units);
    double step = unit.size * nice_step(top / unit.size / most);
    if (unit.size == 1) step = std::max(1.0, step);
    return ticks(0, top, step, unit);
}

std::vector<Tick> time_ticks(double begin, double end, int most) {
    static constexpr std::array<Unit, 3> units{{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}};
    if (!(end > begin)) return {};
    // By the window, not by its position: 2.0310 s … 2.0312 s reads worse than 2031.0 ms … 2031.2 ms.
    const Unit unit = unit_for(end - begin, units);
    return ticks(begin, end, unit.size * nice_step((end - begin) / unit.size / most), unit);
}

std::vector<Tick> count_ticks(double begin, double end, int most) {
    if (!(end > begin)) return {};
    const double step = std::max(1.0, nice_step((end - begin) / most));
    std::vector<Tick> marks;
    for (double at = std::ceil(begin / step) * step; at <= end; at += step)
        marks.push_back({at, text(format_count(static_cast<std::uint64_t>(at)))});
    return marks;
}

}  // namespace zeroplan::gui
