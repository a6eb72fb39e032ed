#include "lane_painter.hpp"

#include <algorithm>
#include <cmath>

#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {

namespace {
// Pixels below which a box has no inside left.
constexpr double least_box = 2;
}  // namespace

StreamLanesView::LanePainter::LanePainter(StreamLanesView& view, QPainter& painter, Stream stream)
    : view_(view), painter_(painter), stream_(stream), area_(view.lane_rect(stream)) {}

QColor StreamLanesView::LanePainter::colour(const TimedOperation& timed) const {
    return operation_colour(view_.lanes_.operation(timed), view_.dark());
}

void StreamLanesView::LanePainter::paint() {
    const auto& groups = view_.lanes_.lane(stream_).groups;
    const auto ends_before = [](const LaneGroup& g, double t) { return g.end_s < t; };
    auto group = std::lower_bound(groups.begin(), groups.end(), view_.begin_, ends_before);
    for (; group != groups.end() && group->start_s < view_.end_; ++group) paint_group(*group);
    flush_pixel();
}

void StreamLanesView::LanePainter::paint_group(const LaneGroup& group) {
    const double width = view_.x_of(group.end_s) - view_.x_of(group.start_s);
    const auto count = static_cast<double>(group.last - group.first + 1);
    const bool has_gaps = group.busy_s < 0.9 * (group.end_s - group.start_s);
    if (count > 1 && (width >= 14 * count || has_gaps)) return paint_operations(group);
    if (width < least_box) {
        for (std::size_t i = group.first; i <= group.last; ++i)
            add_to_pixel(view_.lanes_.lane(stream_).operations[i]);
        return;
    }
    flush_pixel();
    paint_box(view_.x_of(group.start_s), view_.x_of(group.end_s),
              colour(view_.lanes_.lane(stream_).operations[group.first]),
              view_.lanes_.group_labels(stream_, group));
}

void StreamLanesView::LanePainter::paint_operations(const LaneGroup& group) {
    const auto& operations = view_.lanes_.lane(stream_).operations;
    for (std::size_t i = group.first; i <= group.last; ++i) {
        const double from = view_.x_of(operations[i].start_s), to = view_.x_of(operations[i].end_s);
        if (to < area_.left() || from > area_.right()) continue;
        if (to - from < least_box) {
            add_to_pixel(operations[i]);
            continue;
        }
        flush_pixel();
        paint_box(from, to, colour(operations[i]), {view_.lanes_.operation_label(operations[i])});
    }
}

void StreamLanesView::LanePainter::paint_box(double from, double to, const QColor& colour,
                                             const std::vector<QString>& labels) {
    from = std::max(from, area_.left());
    to = std::min(to, area_.right());
    if (to <= from) return;
    const QRectF box(from, area_.top(), to - from, area_.height());
    view_.fill(painter_, box, colour);
    if (box.width() > 4)
        painter_.fillRect(QRectF(to - 1, area_.top(), 1, area_.height()),
                          view_.palette().color(QPalette::Base));
    for (const QString& label : labels) {
        if (view_.fontMetrics().horizontalAdvance(label) + 6 > box.width()) continue;
        painter_.setPen(ink_on(colour));
        painter_.drawText(box, Qt::AlignCenter, label);
        break;
    }
}

void StreamLanesView::LanePainter::add_to_pixel(const TimedOperation& timed) {
    const double from = view_.x_of(timed.start_s), pixel = std::floor(from);
    if (pixel < area_.left() - 1 || pixel > area_.right()) return;
    if (pixel != pixel_) {
        flush_pixel();
        pixel_ = pixel;
    }
    busy_[colour(timed).rgb()] += view_.x_of(timed.end_s) - from;
}

void StreamLanesView::LanePainter::flush_pixel() {
    if (busy_.empty()) return;
    double share = 0;
    auto most = busy_.begin();
    for (auto entry = busy_.begin(); entry != busy_.end(); ++entry) {
        share += entry->second;
        if (entry->second > most->second) most = entry;
    }
    QColor colour(most->first);
    colour.setAlphaF(
        static_cast<float>(std::clamp(share, 0.3, 1.0)));  // a lone short operation stays visible
    view_.fill(painter_, QRectF(pixel_, area_.top(), 1, area_.height()), colour);
    busy_.clear();
    pixel_ = -1;
}

}  // namespace zeroplan::gui
