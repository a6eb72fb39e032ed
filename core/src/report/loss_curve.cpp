#include "report/loss_curve.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace zeroplan {
namespace {

constexpr std::size_t axis_width = 12;

std::vector<double> column_means(std::span<const double> losses, std::size_t columns) {
    std::vector<double> means;
    for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t begin = c * losses.size() / columns, end = (c + 1) * losses.size() / columns;
        double sum = 0;
        for (std::size_t i = begin; i < end; ++i) sum += losses[i];
        means.push_back(sum / static_cast<double>(end - begin));
    }
    return means;
}

/// Few values get several columns each, at most six, as far as `columns` go.
std::vector<double> widened(const std::vector<double>& values, std::size_t columns) {
    constexpr std::size_t widest = 6;
    const std::size_t each = std::min(widest, columns / values.size());
    std::vector<double> wide;
    for (const double value : values) wide.insert(wide.end(), each, value);
    return wide;
}

/// Block that fills `eighths` eighths of a line from below.
const char* block(std::size_t eighths) {
    static constexpr const char* blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    return blocks[std::min<std::size_t>(eighths, 8)];
}

std::string axis(std::size_t line, std::size_t height, double low, double high) {
    if (line == 0) return fmt::format("{:>10.4g} ┤", high);
    if (line + 1 == height) return fmt::format("{:>10.4g} ┤", low);
    return fmt::format("{:>10} │", "");
}

}  // namespace

std::vector<std::string> loss_curve(std::span<const double> losses, std::size_t width, std::size_t height) {
    const bool finite =
        std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
    if (losses.size() < 2 || !finite || width <= axis_width || height == 0) return {};
    const std::vector<double> means =
        widened(column_means(losses, std::min(losses.size(), width - axis_width)), width - axis_width);
    const auto [least, most] = std::minmax_element(means.begin(), means.end());
    const double low = *least, range = std::max(*most - *least, 1e-300);
    std::vector<std::string> lines;
    for (std::size_t line = 0; line < height; ++line) {
        std::string text = axis(line, height, low, *most);
        const std::size_t below = 8 * (height - 1 - line);
        for (const double mean : means) {
            // At least an eighth, so that the lowest loss is seen.
            const double filled = std::max(1.0, (mean - low) / range * static_cast<double>(8 * height));
            const auto eighths = static_cast<std::size_t>(std::lround(filled));
            text += block(eighths > below ? eighths - below : 0);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        lines.push_back(std::move(text));
    }
    return lines;
}

}  // namespace zeroplan
