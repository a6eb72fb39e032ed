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
    const Bytes runtime = plan_->rank_groups.at(rank_group_).runtime;
    allowed_ = difference(plan_->memory.capacity, runtime);
    // What is allocated shares the device with the runtime.
    set_limit(
        allowed_,
        {tr("at most %1: capacity − runtime %2").arg(text(format_gib(allowed_)), text(format_gib(runtime))),
         tr("at most %1").arg(text(format_gib(allowed_))), text(format_gib(allowed_))});
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

double MemoryTimelineView::axis_top() const {
    const double peak = memory_.moments[peak_moment()].total;
    const auto limit = static_cast<double>(allowed_.count());
    // The line is what one looks for, unless it is so far up that nothing else would be seen.
    const double highest = limit < 4 * peak ? std::max(peak, limit) : peak;
    // Above all data there is room for the names and for what the cursor says.
    const double height = plot_rect().height();
    const double room = std::min(0.6 * height, names_height() + label_height() + 5);
    return highest * height / (height - room);
}

void MemoryTimelineView::draw(QPainter& painter) {
    const double top = axis_top();
    draw_byte_axis(painter, top);
    draw_columns(painter, top);
    for (const StepSpan& omitted : memory_.omitted)
        draw_omitted(painter, x_of(omitted.begin), x_of(omitted.end), omitted.name);
    draw_sections(painter);
    draw_limit(painter, top);
    draw_cursor(painter);
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

double MemoryTimelineView::label_height() const {
    return fontMetrics().height() + 2;
}

QString MemoryTimelineView::cursor_text() const {
    return (cursor_ ? QString() : tr("peak ")) + text(format_gib(cursor_moment().live.total()));
}

QRectF MemoryTimelineView::cursor_label() const {
    const StepMoment& moment = cursor_moment();
    if (moment.at < begin_ || moment.at > end_) return {};
    const double top = axis_top(), height = label_height();
    const double width = fontMetrics().horizontalAdvance(cursor_text()) + 8;
    double bottom = y_of(memory_.moments[peak_moment()].total, top) - 2;
    const double limit = y_of(static_cast<double>(allowed_.count()), top);
    if (limit > bottom - height - 2 && limit < bottom + 2)
        bottom = limit - 3;  // text on the line is hard to read
    const double left =
        std::clamp(x_of(moment.at) - width / 2, plot_rect().left(), plot_rect().right() - width);
    return {left, bottom - height, width, height};
}

// Its line ends in its label.
void MemoryTimelineView::draw_cursor(QPainter& painter) const {
    const QRectF label = cursor_label();
    if (label.isEmpty()) return;
    const double x = std::round(x_of(cursor_moment().at)) + 0.5;
    painter.setPen(QPen(palette().color(QPalette::Text), 1));
    painter.drawLine(QPointF(x, plot_rect().bottom()), QPointF(x, label.bottom()));
    painter.drawText(label, Qt::AlignCenter, cursor_text());
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
