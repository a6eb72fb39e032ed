#pragma once
#include <vector>
#include "zeroplan/gui/plot_view.hpp"
#include "zeroplan/gui/stream_lanes.hpp"

namespace zeroplan::gui {

/// One lane a stream. Wheel, + − or W S zoom, dragging, ← → or A D pan, F or Home shows the whole step.
/// What is too narrow to draw by itself is joined, so a repaint draws rectangles by pixels, not by
/// operations.
class StreamLanesView : public PlotView {
    Q_OBJECT
public:
    explicit StreamLanesView(QWidget* parent = nullptr);

    /// Keeps the window if the step takes as long as before.
    void set_lanes(StreamLanes lanes);
    const StreamLanes& lanes() const { return lanes_; }
    const TimedOperation* operation_at(QPointF position) const;
    std::optional<Description> describe_at(QPointF position) const override;
    /// Narrows the window by `factor` < 1 about pixel `x`.
    void zoom(double factor, double x);
    void set_window(double begin_s, double end_s);
    void show_all() { set_window(0, lanes_.end_s()); }
    double begin_s() const { return begin_; }
    double end_s() const { return end_; }

Q_SIGNALS:
    void window_changed(double begin_s, double end_s);

protected:
    bool empty() const override { return lanes_.empty(); }
    void draw(QPainter& painter) override;
    int heading_reserve() const override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    class LanePainter;
    struct LegendEntry {
        QString name;
        Operation like;  ///< what it stands for
    };
    /// Of what occurs in the step.
    std::vector<LegendEntry> legend() const;
    std::vector<LegendEntry> shown_legend() const;
    int legend_width(const std::vector<LegendEntry>& entries) const;
    void draw_legend(QPainter& painter) const;
    std::vector<Stream> shown_streams() const;
    QRectF lane_rect(Stream stream) const;
    double x_of(double seconds) const;
    double seconds_at(double x) const;

    StreamLanes lanes_;
    std::vector<LegendEntry> legend_;
    double begin_ = 0, end_ = 1, drag_x_ = 0;
};

}  // namespace zeroplan::gui
