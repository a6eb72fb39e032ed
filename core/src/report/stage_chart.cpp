#include "report/stage_chart.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/ranges.h>

#include "report/size_unit.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t chart_rows = 15;
constexpr std::size_t label_width = 10;
constexpr std::size_t stages = 4;

/// Rows of the chart for sizes, the largest at the top.
class Scale {
public:
    Scale(Bytes smallest, Bytes largest)
        : logarithmic_(largest.count() > 10 * std::max<std::uint64_t>(smallest.count(), 1)),
          low_(logarithmic_ ? std::log(number(smallest)) : 0),
          high_(logarithmic_ ? std::log(number(largest)) : number(largest)) {}

    std::size_t row(Bytes bytes) const {
        const double at = logarithmic_ ? std::log(number(bytes)) : number(bytes);
        const double from_top = (high_ - at) / (high_ - low_) * static_cast<double>(chart_rows - 1);
        return static_cast<std::size_t>(std::lround(std::clamp(from_top, 0.0, double{chart_rows - 1})));
    }
    Bytes at(std::size_t row) const {
        const double value =
            high_ - (high_ - low_) * static_cast<double>(row) / static_cast<double>(chart_rows - 1);
        return Bytes{static_cast<std::uint64_t>(std::llround(logarithmic_ ? std::exp(value) : value))};
    }
    bool logarithmic() const { return logarithmic_; }

private:
    static double number(Bytes bytes) {
        return static_cast<double>(std::max<std::uint64_t>(bytes.count(), 1));
    }
    bool logarithmic_;
    double low_, high_;
};

std::string x_axis(const StageComparison& comparison, std::size_t slot) {
    std::string text(label_width, ' ');
    for (const std::uint64_t gpus : comparison.gpus)
        text += fmt::format("{:^{}}", fmt::format("{}", gpus), slot);
    text.erase(text.find_last_not_of(' ') + 1);
    return text + " GPUs";
}

/// "0 2 3: ZeRO stage", of those that have a point.
std::string legend(const StageComparison& comparison, std::size_t width) {
    std::set<std::uint32_t> drawn;
    for (const StagePoint& point : comparison.points)
        if (point.refused.empty()) drawn.insert(point.stage);
    const std::string text = fmt::format("{}: ZeRO stage", fmt::join(drawn, " "));
    return std::string(std::min(label_width, width - text.size()), ' ') + text;
}

}  // namespace

std::vector<std::string> stage_chart(const StageComparison& comparison, std::size_t width) {
    const std::size_t counts = comparison.gpus.size();
    constexpr std::size_t suffix = 10;  // " capacity"
    if (counts == 0 || width < label_width + suffix + counts * (stages + 1)) return {};
    const std::size_t slot = std::min<std::size_t>(9, (width - label_width - suffix) / counts);
    Bytes smallest = comparison.capacity, largest = comparison.capacity;
    for (const StagePoint& point : comparison.points) {
        if (!point.refused.empty()) continue;
        smallest = std::min(smallest, point.peak_device);
        largest = std::max(largest, point.peak_device);
    }
    const Scale scale(smallest, largest);
    const SizeUnit unit = unit_for(largest);
    const std::size_t capacity_row = scale.row(comparison.capacity);

    std::vector<std::string> cells(chart_rows, std::string(counts * slot, ' '));
    for (std::size_t i = 0; i < comparison.points.size(); ++i) {
        const StagePoint& point = comparison.points[i];
        if (!point.refused.empty()) continue;
        const std::size_t column = (i % counts) * slot + (slot - stages) / 2 + point.stage;
        cells[scale.row(point.peak_device)][column] = static_cast<char>('0' + point.stage);
    }
    std::vector<std::string> lines{
        fmt::format("{:>{}}{}", unit.binary, label_width - 2, scale.logarithmic() ? "  (logarithmic)" : "")};
    for (std::size_t row = 0; row < chart_rows; ++row) {
        const bool at_capacity = row == capacity_row, labelled = row % 2 == 0 || at_capacity;
        const Bytes value = at_capacity ? comparison.capacity : scale.at(row);
        std::string line = fmt::format("{:>{}} │", labelled ? unit.in_binary(value) : "", label_width - 2);
        for (const char cell : cells[row]) {
            if (cell == ' ' && at_capacity)
                line += "·";
            else
                line += cell;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        lines.push_back(at_capacity ? line + " capacity" : line);
    }
    lines.push_back(x_axis(comparison, slot));
    lines.push_back(legend(comparison, width));
    return lines;
}

}  // namespace zeroplan
