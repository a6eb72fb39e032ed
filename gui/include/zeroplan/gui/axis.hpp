#pragma once
#include <QString>
#include <vector>

#include "zeroplan/units.hpp"

namespace zeroplan::gui {

/// A mark on an axis: where (bytes, seconds or a count) and what it says.
struct Tick {
    double at = 0;
    QString label;
    friend bool operator==(const Tick&, const Tick&) = default;
};

/// Smallest of 1, 2, 5 · 10^k that is not below `least`; 1 if `least` is not positive.
double nice_step(double least);

/// Marks from 0 to `top` bytes in one binary unit, at most `most` steps.
std::vector<Tick> byte_ticks(double top, int most);
/// Marks within [begin, end] seconds, all in one unit.
std::vector<Tick> time_ticks(double begin, double end, int most);
/// Marks within [begin, end] at whole numbers.
std::vector<Tick> count_ticks(double begin, double end, int most);

}  // namespace zeroplan::gui
