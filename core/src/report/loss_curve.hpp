#pragma once
#include <span>
#include <string>
#include <vector>

namespace zeroplan {

/// The losses of a run as `height` lines of block characters, at most `width` columns with the axis; a column
/// shows the mean of the steps it stands for, and a step takes up to six columns where there are few. Empty
/// for fewer than two losses or for losses that are no numbers.
std::vector<std::string> loss_curve(std::span<const double> losses, std::size_t width,
                                    std::size_t height = 8);

}  // namespace zeroplan
