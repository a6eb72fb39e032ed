#pragma once
#include <QPainter>

#include "zeroplan/gui/topology_view.hpp"

namespace zeroplan::gui {

/// Paints a drawing in a view's colours.
class TopologyView::Painter {
public:
    Painter(const TopologyView& view, QPainter& painter);
    void paint();

private:
    struct BoxColours {
        QPen outline;
        QBrush fill;
        QColor ink;
    };

    BoxColours colours_of(const DrawnBox& box) const;
    /// The node in small of the one that is drawn whole.
    bool is_shown(const DrawnBox& box) const;
    void paint_zoom();
    void paint_link(const DrawnLink& link);
    void paint_box(const DrawnBox& box);
    void paint_words(const DrawnBox& box, const QColor& ink);
    QStringList lines_of(const DrawnBox& box, const QRectF& area) const;
    void paint_factor(const DrawnBox& box);
    void paint_label(const DrawnLabel& label);
    void paint_legend();
    double paint_load_scale();
    QColor link_colour(LinkKind kind, double factor) const;
    double line() const;
    QColor faint(int alpha) const;

    const TopologyView& view_;
    QPainter& painter_;
    bool dark_;
    QColor ink_, ground_;
};

}  // namespace zeroplan::gui
