#pragma once
#include <QStringList>
#include <QWidget>
#include <optional>
#include <vector>

#include "zeroplan/gui/axis.hpp"
#include "zeroplan/gui/text.hpp"

namespace zeroplan::gui {

/// What the plots have in common: a heading above, axes, theme, what hovering says, a focus frame, and a
/// count of what was painted, by which the tests bound the work of a repaint.
class PlotView : public QWidget {
    Q_OBJECT
public:
    explicit PlotView(QWidget* parent = nullptr);

    /// Bold title, then details in plain type, cut with … where they don't fit.
    void set_heading(const QString& title, const QString& details = {});
    /// Shown in the middle while there is nothing to plot.
    void set_placeholder(const QString& why);
    /// Fades the plot: it belongs to an earlier configuration than the form shows.
    void set_stale(bool stale);

    const QString& placeholder() const { return placeholder_; }
    const QString& title() const { return title_; }
    const QString& details() const { return details_; }
    QStringList limit_names() const { return limit_ ? limit_->names : QStringList(); }
    /// Filled rectangles of the last paint.
    std::size_t drawn_rectangles() const { return drawn_rectangles_; }
    /// Where data is drawn, inside the axes.
    QRectF plot_rect() const { return plot_rect_; }
    /// What hovering at `position` says; nothing where there is nothing.
    virtual std::optional<Description> describe_at(QPointF position) const = 0;

protected:
    virtual bool empty() const = 0;
    virtual void draw(QPainter& painter) = 0;

    bool dark() const;
    QColor grid_colour() const;
    void fill(QPainter& painter, const QRectF& area, const QBrush& brush);
    /// Grid lines and labels at the left; `scale` is pixels per byte.
    void draw_byte_axis(QPainter& painter, double top) const;
    /// Labels below; `x_of` maps a tick to a pixel.
    template <class Map>
    void draw_bottom_axis(QPainter& painter, const std::vector<Tick>& ticks, Map x_of) const {
        for (const Tick& tick : ticks) draw_bottom_label(painter, x_of(tick.at), tick.label);
    }
    void draw_bottom_label(QPainter& painter, double x, const QString& label) const;
    /// A dashed line that no byte should be above. Its name stands in the heading, where it covers no data:
    /// the first of `names`, longest first, that there is room for.
    void set_limit(Bytes limit, const QStringList& names);
    void draw_limit(QPainter& painter, double top) const;
    /// Hatches the span in which the pattern around it repeats.
    void draw_omitted(QPainter& painter, double from, double to, const QString& label) const;
    double y_of(double bytes, double top) const;
    /// Tells assistive technology that accessibleDescription() changed.
    void announce(const QString& description);

    void paintEvent(QPaintEvent* event) final;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;
    bool event(QEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    /// Pixels at the right of the heading's line that the view uses itself.
    virtual int heading_reserve() const;
    /// Pixels from the left that the heading's words take if nothing is cut.
    int heading_width() const;
    /// The axes' room changed.
    virtual void layout_changed() {}

private:
    void layout_plot();
    QString limit_name() const;
    void draw_heading(QPainter& painter) const;
    void draw_placeholder(QPainter& painter) const;

    struct Limit {
        Bytes bytes;
        QStringList names;
    };
    QString title_, details_, placeholder_;
    std::optional<Limit> limit_;
    QRectF plot_rect_;
    bool stale_ = false;
    std::size_t drawn_rectangles_ = 0;
};

}  // namespace zeroplan::gui
