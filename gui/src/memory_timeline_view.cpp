#include "zeroplan/gui/memory_timeline_view.hpp"

#include <QKeyEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {

MemoryTimelineView::MemoryTimelineView(QWidget* parent) : PlotView(parent) {
    setAccessibleName(tr("Memory over one step"));
    set_heading(tr("Memory over one step"));
}

void MemoryTimelineView::set_memory(std::shared_ptr<const Plan> plan, std::uint32_t rank_group,
                                    StepMemory memory) {
    plan_ = std::move(plan);
    rank_group_ = rank_group;
    memory_ = std::move(memory);
    cursor_.reset();
    set_window(0, memory_.end);
    if (!empty())
        announce(plain_text(
            describe_moment(*plan_, rank_group_, memory_, memory_.moments[peak_moment()], dark())));
}

void MemoryTimelineView::set_window(double begin, double end) {
    begin_ = begin;
    end_ = end > begin ? end : begin + 1;
    update();
}

double MemoryTimelineView::x_of(double at) const {
    return plot_rect().left() + (at - begin_) / (end_ - begin_) * plot_rect().width();
}

double MemoryTimelineView::at_x(double x) const {
    return begin_ + (x - plot_rect().left()) / plot_rect().width() * (end_ - begin_);
}

std::size_t MemoryTimelineView::peak_moment() const {
    const auto less = [](const StepMoment& a, const StepMoment& b) { return a.total < b.total; };
    return static_cast<std::size_t>(std::max_element(memory_.moments.begin(), memory_.moments.end(), less) -
                                    memory_.moments.begin());
}

const StepMoment& MemoryTimelineView::fullest_between(double begin, double end) const {
    const auto& moments = memory_.moments;
    const auto before = [](const StepMoment& m, double x) { return m.at < x; };
    const auto first = std::lower_bound(moments.begin(), moments.end(), begin, before);
    // What holds at `begin` was set earlier, unless something happens right there.
    auto fullest =
        first == moments.begin() || (first != moments.end() && first->at <= begin) ? first : first - 1;
    for (auto m = first; m != moments.end() && m->at < end; ++m)
        if (m->total > fullest->total) fullest = m;
    return *fullest;
}

void MemoryTimelineView::draw(QPainter& painter) {
    const double peak = memory_.moments[peak_moment()].total;
    const auto capacity = static_cast<double>(plan_->memory.capacity.count());
    // The line is what one looks for, unless it is so far up that nothing else would be seen.
    const double top = (capacity < 4 * peak ? std::max(peak, capacity) : peak) *
                       (1.08 + names_height() / plot_rect().height());
    draw_byte_axis(painter, top);
    draw_columns(painter, top);
    for (const StepSpan& omitted : memory_.omitted)
        draw_omitted(painter, x_of(omitted.begin), x_of(omitted.end), omitted.name);
    draw_sections(painter);
    draw_capacity(painter, plan_->memory.capacity, top);
    draw_cursor(painter, top);
    const int most = std::max(2, static_cast<int>(plot_rect().width() / 90));
    draw_bottom_axis(
        painter,
        memory_.axis == StepAxis::time ? time_ticks(begin_, end_, most) : count_ticks(begin_, end_, most),
        [this](double at) { return x_of(at); });
}

// By pixel columns, equal neighbours joined: filling one polygon of the same jagged outline is far slower.
void MemoryTimelineView::draw_columns(QPainter& painter, double top) {
    const auto pixels = static_cast<int>(plot_rect().width());
    for (int from = 0; from < pixels;) {
        const StepMoment& moment =
            fullest_between(at_x(plot_rect().left() + from), at_x(plot_rect().left() + from + 1));
        int to = from + 1;
        while (to < pixels) {
            const StepMoment& next =
                fullest_between(at_x(plot_rect().left() + to), at_x(plot_rect().left() + to + 1));
            if (!(next.live == moment.live)) break;
            ++to;
        }
        double below = 0;
        for (const Category c : all_categories) {
            const auto bytes = static_cast<double>(moment.live[c].count());
            if (!(bytes > 0)) continue;
            const double low = y_of(below, top), high = y_of(below + bytes, top);
            fill(painter, QRectF(plot_rect().left() + from, high, to - from, low - high),
                 category_colour(c, dark()));
            below += bytes;
        }
        from = to;
    }
}

// The sections' names stand above everything that is drawn.
double MemoryTimelineView::names_height() const {
    return memory_.sections.size() > 1 ? fontMetrics().height() : 0;
}

void MemoryTimelineView::draw_sections(QPainter& painter) const {
    if (memory_.sections.size() < 2) return;
    painter.save();
    QColor line = palette().color(QPalette::Text);
    for (const StepSpan& section : memory_.sections) {
        const double left = std::max(x_of(section.begin), plot_rect().left());
        const double right = std::min(x_of(section.end), plot_rect().right());
        if (right - left < 3) continue;
        line.setAlpha(120);
        painter.setPen(QPen(line, 1, Qt::DotLine));
        if (section.begin > begin_)
            painter.drawLine(QPointF(left, plot_rect().top()), QPointF(left, plot_rect().bottom()));
        const int room = static_cast<int>(right - left) - 8;
        if (room < fontMetrics().horizontalAdvance("micro…")) continue;
        painter.setPen(palette().color(QPalette::Text));
        painter.drawText(QRectF(left + 4, plot_rect().top() - 2, room, fontMetrics().height()), Qt::AlignLeft,
                         fontMetrics().elidedText(section.name, Qt::ElideRight, room));
    }
    painter.restore();
}

void MemoryTimelineView::draw_cursor(QPainter& painter, double top) const {
    const bool moved = cursor_.has_value();
    const StepMoment& moment = memory_.moments[cursor_.value_or(peak_moment())];
    if (moment.at < begin_ || moment.at > end_) return;
    const double x = std::round(x_of(moment.at)) + 0.5, y = y_of(moment.total, top);
    painter.setPen(QPen(palette().color(QPalette::Text), 1));
    painter.drawLine(QPointF(x, plot_rect().bottom()), QPointF(x, y));
    const QString said = (moved ? QString() : tr("peak ")) + text(format_gib(moment.live.total()));
    const double width = fontMetrics().horizontalAdvance(said) + 8, height = fontMetrics().height();
    // At the side with room, beside the line.
    const double left = x + width < plot_rect().right() ? x + 2 : x - width - 2;
    const QRectF box(
        left, std::clamp(y - height / 2, plot_rect().top() + names_height(), plot_rect().bottom() - height),
        width, height);
    QColor ground = palette().color(QPalette::Base);
    ground.setAlpha(215);
    painter.fillRect(box, ground);
    painter.drawText(box, Qt::AlignCenter, said);
}

std::optional<Description> MemoryTimelineView::describe_at(QPointF position) const {
    if (!plot_rect().adjusted(-1, -8, 1, 8).contains(position)) return std::nullopt;
    const double x = std::floor(position.x() - plot_rect().left()) + plot_rect().left();
    return describe_moment(*plan_, rank_group_, memory_, fullest_between(at_x(x), at_x(x + 1)), dark());
}

void MemoryTimelineView::move_cursor(std::size_t moment) {
    cursor_ = moment;
    announce(plain_text(describe_moment(*plan_, rank_group_, memory_, memory_.moments[moment], dark())));
    update();
}

void MemoryTimelineView::keyPressEvent(QKeyEvent* event) {
    if (empty()) return PlotView::keyPressEvent(event);
    const std::size_t at = cursor_.value_or(peak_moment());
    switch (event->key()) {
        case Qt::Key_Left:
            return move_cursor(at == 0 ? 0 : at - 1);
        case Qt::Key_Right:
            return move_cursor(std::min(at + 1, memory_.moments.size() - 1));
        case Qt::Key_Home:
            return move_cursor(0);
        case Qt::Key_End:
            return move_cursor(memory_.moments.size() - 1);
        case Qt::Key_P:
            return move_cursor(peak_moment());
        default:
            PlotView::keyPressEvent(event);
    }
}

}  // namespace zeroplan::gui
