#include "zeroplan/gui/label_column.hpp"

#include <algorithm>

namespace zeroplan::gui {

LabelColumn::LabelColumn(double top, double bottom, double line_height)
    : top_(top), bottom_(std::max(bottom, top + line_height)), line_(line_height) {}

void LabelColumn::keep_free(double y) {
    taken_.push_back({y - 2, y + 2});
}

bool LabelColumn::is_free(double from) const {
    return std::none_of(taken_.begin(), taken_.end(),
                        [&](const Span& span) { return from < span.to && from + line_ > span.from; });
}

std::optional<double> LabelColumn::place(double middle) {
    for (const double lines_off : {0.0, 0.5, -0.5, 1.0, -1.0}) {
        const double from = std::clamp(middle + (lines_off - 0.5) * line_, top_, bottom_ - line_);
        if (!is_free(from)) continue;
        taken_.push_back({from, from + line_});
        return from;
    }
    return std::nullopt;
}

}  // namespace zeroplan::gui
