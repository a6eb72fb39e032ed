#pragma once
#include <QPainter>
#include <map>

#include "zeroplan/gui/stream_lanes_view.hpp"

namespace zeroplan::gui {

/// Paints one lane at the view's zoom: operations where there is room for each, else their group as one box,
/// else pixel columns as opaque as the stream is busy in them.
class StreamLanesView::LanePainter {
public:
    LanePainter(StreamLanesView& view, QPainter& painter, Stream stream);
    void paint();

private:
    void paint_group(const LaneGroup& group);
    void paint_operations(const LaneGroup& group);
    void paint_box(double from, double to, const QColor& colour, const std::vector<QString>& labels);
    void add_to_pixel(const TimedOperation& timed);
    void flush_pixel();
    QColor colour(const TimedOperation& timed) const;

    StreamLanesView& view_;
    QPainter& painter_;
    Stream stream_;
    QRectF area_;
    double pixel_ = -1;
    std::map<QRgb, double> busy_;  ///< share of the pixel, by colour
};

}  // namespace zeroplan::gui
