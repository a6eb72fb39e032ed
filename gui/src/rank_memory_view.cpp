#include "zeroplan/gui/rank_memory_view.hpp"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <utility>

#include "zeroplan/gui/label_column.hpp"
#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {

namespace {

double number(Bytes bytes) {
    return static_cast<double>(bytes.count());
}

// A segment of a bar with what it is called, from the bottom up.
struct Segment {
    QString name;
    double bytes = 0;
    QBrush brush;
    double middle = 0;  // pixel
};

std::vector<Segment> segments(const MemoryStack& stack, bool dark) {
    std::vector<Segment> all;
    const auto add = [&](const QString& name, Bytes bytes, const QBrush& brush) {
        if (bytes > Bytes{}) all.push_back({name, number(bytes), brush});
    };
    for (const Category c : all_categories) add(label(c), stack.allocated[c], category_colour(c, dark));
    add(QObject::tr("reserved"), stack.slack, reserved_brush(dark));
    add(QObject::tr("runtime"), stack.runtime, runtime_colour(dark));
    return all;
}

}  // namespace

RankMemoryView::RankMemoryView(QWidget* parent) : PlotView(parent) {
    setAccessibleName(tr("Memory per rank"));
    set_heading(tr("Memory per rank"));
    setMinimumSize(140, 150);  // two stand beside each other in a small window
}

void RankMemoryView::set_plan(std::shared_ptr<const Plan> plan) {
    plan_ = std::move(plan);
    layout_changed();
    if (!empty()) {
        const Bytes capacity = plan_->memory.capacity;
        set_limit(capacity, {tr("capacity %1").arg(both_units(capacity)),
                             tr("capacity %1").arg(text(format_gib(capacity))), text(format_gib(capacity))});
        selected_ = std::min(selected_, plan_->scenario.world_size() - 1);
        announce(plain_text(describe_rank(*plan_, selected_, dark())));
    }
    update();
}

void RankMemoryView::set_top(double bytes) {
    top_ = bytes;
    update();
}

double RankMemoryView::needed_top() const {
    if (empty()) return 0;
    Bytes highest{1};
    for (const RankGroup& group : plan_->rank_groups) highest = std::max(highest, overall_peak(group).device);
    const double used = number(highest), capacity = number(plan_->memory.capacity);
    // A capacity a hundred times the data would leave nothing to see.
    const bool with_capacity = !scale_to_data_ && capacity < 100 * used;
    return 1.06 * (with_capacity ? std::max(used, capacity) : used);
}

void RankMemoryView::layout_changed() {
    columns_ =
        empty() ? RankColumns{} : rank_columns(*plan_, plot_rect().left() + 2, plot_rect().width() - 2);
}

void RankMemoryView::draw(QPainter& painter) {
    const double top = top_ > 0 ? top_ : needed_top();
    draw_byte_axis(painter, top);
    for (const RankColumn& column : columns_.columns) draw_column(painter, column, top);
    draw_selection(painter, top);
    draw_limit(painter, top);
    draw_ranks(painter);
}

void RankMemoryView::draw_column(QPainter& painter, const RankColumn& column, double top) {
    const RankGroup& group = plan_->rank_groups[column.group];
    const QColor ground = palette().color(QPalette::Base);
    double below = 0;
    for (const Segment& segment : segments(memory_stack(group), dark())) {
        const double low = y_of(below, top), high = y_of(below + segment.bytes, top);
        fill(painter, QRectF(column.x, high, column.width, low - high), segment.brush);
        if (low - high > 3 &&
            column.width > 3)  // a line between neighbours, where it leaves something of them
            painter.fillRect(QRectF(column.x, high, column.width, 1), ground);
        below += segment.bytes;
    }
    draw_overflow(painter, column, below, top);
    draw_segment_labels(painter, column, top);
    const double overall = number(overall_peak(group).device);
    if (overall > below * 1.002 && column.width > 3) {  // another phase needs more: outlined above the bar
        painter.setPen(QPen(palette().color(QPalette::Text), 1, Qt::DotLine));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(
            QRectF(column.x, y_of(overall, top), column.width - 1, y_of(below, top) - y_of(overall, top)));
    }
}

void RankMemoryView::draw_overflow(QPainter& painter, const RankColumn& column, double total, double top) {
    const double capacity = number(plan_->memory.capacity);
    if (total <= capacity) return;
    const double high = y_of(total, top), low = y_of(capacity, top);
    QColor wash = overflow_colour(dark());
    wash.setAlpha(45);
    fill(painter, QRectF(column.x, high, column.width, low - high), wash);
    fill(painter, QRectF(column.x, high, column.width, low - high),
         QBrush(overflow_colour(dark()), Qt::BDiagPattern));
}

void RankMemoryView::draw_segment_labels(QPainter& painter, const RankColumn& column, double top) const {
    const double x = column.x + column.width + 8, room = column.slot + column.slot_width - x - 4;
    if (room < 150) return;
    auto parts = segments(memory_stack(plan_->rank_groups[column.group]), dark());
    double below = 0;
    for (Segment& part : parts)
        part.middle = y_of(std::exchange(below, below + part.bytes) + part.bytes / 2, top);
    // The largest first: where there is no room for all, the small ones are on hover and in the table.
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Segment& a, const Segment& b) { return a.bytes > b.bytes; });
    LabelColumn taken(plot_rect().top(), plot_rect().bottom(), fontMetrics().height());
    taken.keep_free(y_of(number(plan_->memory.capacity), top));
    painter.setPen(palette().color(QPalette::Text));
    for (const Segment& part : parts) {
        const auto y = taken.place(part.middle);
        if (!y) continue;
        const QString said =
            part.name + "  " + text(format_gib(Bytes{static_cast<std::uint64_t>(part.bytes)}));
        painter.drawText(QRectF(x, *y, room, fontMetrics().height()), Qt::AlignLeft | Qt::AlignVCenter,
                         fontMetrics().elidedText(said, Qt::ElideRight, static_cast<int>(room)));
    }
}

void RankMemoryView::draw_selection(QPainter& painter, double top) const {
    if (columns_.columns.size() < 2) return;
    const RankColumn& column = columns_.columns[column_of(selected_)];
    const double high = y_of(number(memory_stack(plan_->rank_groups[column.group]).total()), top);
    painter.setPen(QPen(palette().color(QPalette::Text), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRectF(column.x - 1.5, high - 1.5, column.width + 2, plot_rect().bottom() - high + 2));
}

void RankMemoryView::draw_ranks(QPainter& painter) const {
    if (columns_.mode == ColumnMode::group) {
        for (const RankColumn& column : columns_.columns) {
            const QString ranks = text(to_string(plan_->rank_groups[column.group].ranks));
            const int room = static_cast<int>(column.slot_width) - 6;
            const QString words = tr("ranks %1").arg(ranks);
            const bool fits = fontMetrics().horizontalAdvance(words) <= room;
            painter.setPen(palette().color(QPalette::Text));
            painter.drawText(QRectF(column.x, plot_rect().bottom() + 5, room, fontMetrics().height()),
                             Qt::AlignLeft,
                             fontMetrics().elidedText(fits ? words : ranks, Qt::ElideRight, room));
        }
        return;
    }
    const double ranks = static_cast<double>(plan_->scenario.world_size());
    const double slot = (plot_rect().width() - 2) / ranks;
    const int most = std::max(1, static_cast<int>(plot_rect().width() / 56));
    // Powers of two: they fall on node boundaries.
    double step = 1;
    while (ranks / step > most) step *= 2;
    for (double rank = 0; rank < ranks; rank += step) {
        double x = plot_rect().left() + 2 + slot * (rank + 0.5);
        if (columns_.mode == ColumnMode::rank) {
            const RankColumn& column = columns_.columns[static_cast<std::size_t>(rank)];
            x = column.x + column.width / 2;
        }
        draw_bottom_label(painter, x, text(format_count(static_cast<std::uint64_t>(rank))));
    }
}

std::size_t RankMemoryView::column_of(std::uint64_t rank) const {
    if (columns_.mode == ColumnMode::group) {
        const std::uint32_t group = group_of(*plan_, rank);
        for (std::size_t i = 0; i < columns_.columns.size(); ++i)
            if (columns_.columns[i].group == group) return i;
        return 0;
    }
    const auto after =
        std::upper_bound(columns_.columns.begin(), columns_.columns.end(), rank,
                         [](std::uint64_t r, const RankColumn& c) { return r < c.ranks.first; });
    return after == columns_.columns.begin() ? 0
                                             : static_cast<std::size_t>(after - columns_.columns.begin()) - 1;
}

std::optional<std::uint64_t> RankMemoryView::rank_at(QPointF position) const {
    const auto& columns = columns_.columns;
    if (position.y() < plot_rect().top() - 4 || columns.empty()) return std::nullopt;
    const auto after = std::upper_bound(columns.begin(), columns.end(), position.x(),
                                        [](double x, const RankColumn& c) { return x < c.slot; });
    if (after == columns.begin()) return std::nullopt;
    const RankColumn& column = *std::prev(after);
    const double into = (position.x() - column.slot) / column.slot_width;
    if (into >= 1) return std::nullopt;
    if (columns_.mode != ColumnMode::pixel) return column.ranks.first;
    const double ranks = static_cast<double>(column.ranks.last - column.ranks.first + 1);
    // Where one pixel stands for several groups it shows the fullest: name a rank of that one.
    const auto rank = column.ranks.first + static_cast<std::uint64_t>(into * ranks);
    std::optional<std::uint64_t> nearest;
    const auto distance = [rank](std::uint64_t r) { return r > rank ? r - rank : rank - r; };
    for (const RankRange& range : plan_->rank_groups[column.group].ranks) {
        const auto first = std::max(range.first, column.ranks.first),
                   last = std::min(range.last, column.ranks.last);
        if (first > last) continue;
        const auto candidate = std::clamp(rank, first, last);
        if (!nearest || distance(candidate) < distance(*nearest)) nearest = candidate;
    }
    return nearest.value_or(rank);
}

std::optional<Description> RankMemoryView::describe_at(QPointF position) const {
    const auto rank = rank_at(position);
    if (!rank) return std::nullopt;
    return describe_rank(*plan_, *rank, dark());
}

void RankMemoryView::select_rank(std::uint64_t rank) {
    if (empty()) return;
    rank = std::min(rank, plan_->scenario.world_size() - 1);
    if (rank == selected_) return;
    selected_ = rank;
    announce(plain_text(describe_rank(*plan_, selected_, dark())));
    update();
    Q_EMIT rank_selected(rank);
}

void RankMemoryView::step_column(int by) {
    const auto& columns = columns_.columns;
    const auto at = static_cast<std::ptrdiff_t>(column_of(selected_)) + by;
    if (at >= 0 && at < static_cast<std::ptrdiff_t>(columns.size()))
        select_rank(columns[static_cast<std::size_t>(at)].ranks.first);
}

void RankMemoryView::mousePressEvent(QMouseEvent* event) {
    if (empty()) return;
    if (const auto rank = rank_at(event->position())) select_rank(*rank);
}

void RankMemoryView::keyPressEvent(QKeyEvent* event) {
    if (empty()) return PlotView::keyPressEvent(event);
    const std::uint64_t node = std::max<std::uint64_t>(1, plan_->scenario.cluster.gpus_per_node);
    switch (event->key()) {
        case Qt::Key_Left:
            return step_column(-1);
        case Qt::Key_Right:
            return step_column(+1);
        case Qt::Key_PageUp:
            return select_rank(selected_ - std::min(selected_, node));
        case Qt::Key_PageDown:
            return select_rank(selected_ + node);
        case Qt::Key_Home:
            return select_rank(0);
        case Qt::Key_End:
            return select_rank(plan_->scenario.world_size() - 1);
        case Qt::Key_P:
            return select_rank(plan_->memory.peak_rank);
        case Qt::Key_Z:
            scale_to_data_ = !scale_to_data_;
            return update();
        default:
            PlotView::keyPressEvent(event);
    }
}

}  // namespace zeroplan::gui
