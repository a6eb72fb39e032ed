#pragma once
#include <string>
#include <vector>

#include "zeroplan/compare_stages.hpp"

namespace zeroplan {

/// Device memory over GPUs as lines of text at most `width` columns wide: the digit of a stage stands at its
/// peak, a dotted line at the capacity; the last line says so. Logarithmic where the figures lie more than a
/// factor of 10 apart. Empty if there are too many counts for the width.
std::vector<std::string> stage_chart(const StageComparison& comparison, std::size_t width);

}  // namespace zeroplan
