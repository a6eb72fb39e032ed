#include "zeroplan/gui/plot_view.hpp"

#include <QAccessible>
#include <QEvent>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {

namespace {
constexpr double margin = 8;
constexpr int limit_swatch = 22;
}  // namespace

PlotView::PlotView(QWidget* parent) : QWidget(parent) {
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setMinimumSize(260, 110);
    layout_plot();
}

void PlotView::set_heading(const QString& title, const QString& details) {
    title_ = title;
    details_ = details;
    update();
}

void PlotView::set_placeholder(const QString& why) {
    placeholder_ = why;
    update();
}

void PlotView::set_stale(bool stale) {
    if (stale == stale_) return;
    stale_ = stale;
    update();
}

bool PlotView::dark() const {
    return is_dark(palette());
}

QColor PlotView::grid_colour() const {
    QColor colour = palette().color(QPalette::Text);
    colour.setAlpha(38);
    return colour;
}

void PlotView::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    drawn_rectangles_ = 0;
    painter.fillRect(rect(), palette().color(QPalette::Base));
    draw_heading(painter);
    if (empty()) {
        draw_placeholder(painter);
    } else {
        if (stale_) painter.setOpacity(0.35);
        draw(painter);
        painter.setOpacity(1);
    }
    if (hasFocus()) {
        painter.setPen(QPen(palette().color(QPalette::Highlight), 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(rect().adjusted(1, 1, -1, -1));
    }
}

int PlotView::heading_width() const {
    QFont bold = font();
    bold.setBold(true);
    return static_cast<int>(margin) + QFontMetrics(bold).horizontalAdvance(title_) + 12 +
           fontMetrics().horizontalAdvance(details_);
}

void PlotView::draw_heading(QPainter& painter) const {
    QFont bold = font();
    bold.setBold(true);
    const QFontMetrics bold_metrics(bold);
    const int height = bold_metrics.height() + 6, left = static_cast<int>(margin);
    painter.setFont(bold);
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(QRect(left, 2, width() - left, height), Qt::AlignVCenter | Qt::AlignLeft, title_);
    painter.setFont(font());
    const int x = left + bold_metrics.horizontalAdvance(title_) + 12;
    const int room = width() - x - left - heading_reserve();
    if (room > 40)
        painter.drawText(QRect(x, 2, room, height), Qt::AlignVCenter | Qt::AlignLeft,
                         fontMetrics().elidedText(details_, Qt::ElideRight, room));
}

void PlotView::draw_placeholder(QPainter& painter) const {
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(rect().adjusted(20, 20, -20, -10), Qt::AlignCenter | Qt::TextWordWrap, placeholder_);
}

void PlotView::layout_plot() {
    const double left = fontMetrics().horizontalAdvance("0000 GiB") + 2 * margin;
    const double top = fontMetrics().height() + 14, bottom = fontMetrics().height() + 10;
    plot_rect_ =
        QRectF(left, top, std::max(1.0, width() - left - margin), std::max(1.0, height() - top - bottom));
    layout_changed();
}

void PlotView::fill(QPainter& painter, const QRectF& area, const QBrush& brush) {
    painter.fillRect(area, brush);
    ++drawn_rectangles_;
}

double PlotView::y_of(double bytes, double top) const {
    return plot_rect_.bottom() - plot_rect_.height() * bytes / top;
}

void PlotView::draw_byte_axis(QPainter& painter, double top) const {
    const int most = std::clamp(static_cast<int>(plot_rect_.height() / 32), 1, 6);
    for (const Tick& tick : byte_ticks(top, most)) {
        const double y = std::round(y_of(tick.at, top)) + 0.5;
        painter.setPen(grid_colour());
        painter.drawLine(QPointF(plot_rect_.left(), y), QPointF(plot_rect_.right(), y));
        painter.setPen(palette().color(QPalette::Text));
        painter.drawText(QRectF(0, y - 12, plot_rect_.left() - margin, 24), Qt::AlignRight | Qt::AlignVCenter,
                         tick.label);
    }
}

void PlotView::draw_bottom_label(QPainter& painter, double x, const QString& label) const {
    const double width = fontMetrics().horizontalAdvance(label) + 2;
    if (x < plot_rect_.left() - 1 || x > plot_rect_.right() + 1) return;
    painter.setPen(grid_colour());
    painter.drawLine(QPointF(std::round(x) + 0.5, plot_rect_.bottom()),
                     QPointF(std::round(x) + 0.5, plot_rect_.bottom() + 4));
    painter.setPen(palette().color(QPalette::Text));
    // The labels at both ends stay inside the widget.
    const double from = std::clamp(x - width / 2, 2.0, std::max(2.0, this->width() - width - 2.0));
    painter.drawText(QRectF(from, plot_rect_.bottom() + 5, width, fontMetrics().height()), Qt::AlignCenter,
                     label);
}

void PlotView::set_limit(Bytes limit, const QStringList& names) {
    limit_ = Limit{limit, names};
    update();
}

QString PlotView::limit_name() const {
    QFont bold = font();
    bold.setBold(true);
    const int room = width() - QFontMetrics(bold).horizontalAdvance(title_) - limit_swatch - 40;
    for (const QString& name : limit_->names)
        if (fontMetrics().horizontalAdvance(name) < room) return name;
    return {};
}

int PlotView::heading_reserve() const {
    const QString name = limit_ && !empty() ? limit_name() : QString();
    return name.isEmpty() ? 0 : fontMetrics().horizontalAdvance(name) + limit_swatch + 24;
}

void PlotView::draw_limit(QPainter& painter, double top) const {
    if (!limit_) return;
    painter.setPen(QPen(overflow_colour(dark()), 2, Qt::DashLine));
    const double y = std::round(y_of(static_cast<double>(limit_->bytes.count()), top)) + 0.5;
    const bool beyond = y < plot_rect_.top();
    if (!beyond) painter.drawLine(QPointF(plot_rect_.left(), y), QPointF(plot_rect_.right(), y));
    const QString name = limit_name();
    if (name.isEmpty()) return;
    const double width = fontMetrics().horizontalAdvance(name) + 2, left = this->width() - width - 10;
    const QRectF box(left, 2, width, fontMetrics().height() + 6);
    const double middle = std::round(box.center().y()) + 0.5, swatch_end = left - 6;
    if (!beyond) painter.drawLine(QPointF(swatch_end - limit_swatch, middle), QPointF(swatch_end, middle));
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(box, Qt::AlignVCenter | Qt::AlignLeft, name);
    if (beyond)  // further up than the axis goes
        painter.drawText(QRectF(swatch_end - limit_swatch, 2, limit_swatch, box.height()),
                         Qt::AlignVCenter | Qt::AlignRight, "↑");
}

void PlotView::draw_omitted(QPainter& painter, double from, double to, const QString& label) const {
    const QRectF area =
        QRectF(QPointF(from, plot_rect_.top()), QPointF(to, plot_rect_.bottom())) & plot_rect_;
    if (area.width() < 1) return;
    QColor hatch = palette().color(QPalette::Text);
    hatch.setAlpha(70);
    painter.fillRect(area, palette().color(QPalette::Base));
    painter.fillRect(area, QBrush(hatch, Qt::BDiagPattern));
    const double width = fontMetrics().horizontalAdvance(label) + 10, height = fontMetrics().height() + 2;
    if (width > area.width()) return;
    const QRectF box(area.center().x() - width / 2, area.center().y() - height / 2, width, height);
    painter.fillRect(box, palette().color(QPalette::Base));
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(box, Qt::AlignCenter, label);
}

void PlotView::announce(const QString& description) {
    if (description == accessibleDescription()) return;
    setAccessibleDescription(description);
    QAccessibleEvent changed(this, QAccessible::DescriptionChanged);
    QAccessible::updateAccessibility(&changed);
}

void PlotView::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    layout_plot();
}

void PlotView::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) layout_plot();
    update();
}

bool PlotView::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const auto description = empty() ? std::nullopt : describe_at(help->pos()))
        QToolTip::showText(help->globalPos(), rich_text(*description), this);
    else
        QToolTip::hideText();
    return true;
}

void PlotView::mouseMoveEvent(QMouseEvent* event) {
    QWidget::mouseMoveEvent(event);
    if (event->buttons() != Qt::NoButton || empty()) return;
    // At once, without the usual delay: hovering is how the figures are read.
    if (const auto description = describe_at(event->position()))
        QToolTip::showText(event->globalPosition().toPoint(), rich_text(*description), this);
    else
        QToolTip::hideText();
}

void PlotView::leaveEvent(QEvent* event) {
    QWidget::leaveEvent(event);
    QToolTip::hideText();
}

}  // namespace zeroplan::gui
