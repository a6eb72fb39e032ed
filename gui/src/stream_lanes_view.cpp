#include "zeroplan/gui/stream_lanes_view.hpp"

#include <QKeyEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <set>

#include "lane_painter.hpp"
#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {

namespace {
constexpr int swatch = 10;

Operation example(OperationBody body) {
    return Operation{std::move(body), Stream::compute, {}};
}

Operation compute_example(ComputePhase phase) {
    Compute compute;
    compute.phase = phase;
    return example(compute);
}

Operation collective_example(CollectiveKind kind) {
    Collective collective;
    collective.kind = kind;
    return example(collective);
}
}  // namespace

StreamLanesView::StreamLanesView(QWidget* parent) : PlotView(parent) {
    setAccessibleName(tr("Streams of one step"));
    set_heading(tr("Streams of one step"));
    setMinimumHeight(120);
}

void StreamLanesView::set_lanes(StreamLanes lanes) {
    const bool same_span = !lanes_.empty() && std::abs(lanes.end_s() - lanes_.end_s()) < 1e-9 * lanes.end_s();
    lanes_ = std::move(lanes);
    legend_ = legend();
    if (!same_span) return show_all();
    update();
}

// Only parallelism inside a layer and between stages exchanges anything, and only what is offloaded goes to
// the host: lanes beyond the first three are left out where nothing runs on them.
std::vector<Stream> StreamLanesView::shown_streams() const {
    std::vector<Stream> shown;
    for (const Stream stream : all_streams)
        if (stream < Stream::exchange || (!empty() && !lanes_.lane(stream).operations.empty()))
            shown.push_back(stream);
    return shown;
}

QRectF StreamLanesView::lane_rect(Stream stream) const {
    const QRectF plot = plot_rect();
    const std::vector<Stream> shown = shown_streams();
    const double height = plot.height() / static_cast<double>(shown.size());
    const auto place = static_cast<double>(std::find(shown.begin(), shown.end(), stream) - shown.begin());
    return {plot.left(), std::round(plot.top() + height * place) + 1, plot.width(),
            std::max(3.0, std::round(height) - 3)};
}

double StreamLanesView::x_of(double seconds) const {
    return plot_rect().left() + (seconds - begin_) / (end_ - begin_) * plot_rect().width();
}

double StreamLanesView::seconds_at(double x) const {
    return begin_ + (x - plot_rect().left()) / plot_rect().width() * (end_ - begin_);
}

void StreamLanesView::draw(QPainter& painter) {
    for (const Stream stream : shown_streams()) {
        const QRectF lane = lane_rect(stream);
        painter.fillRect(lane, palette().color(QPalette::AlternateBase));
        painter.setPen(palette().color(QPalette::Text));
        painter.drawText(QRectF(0, lane.top(), lane.left() - 8, lane.height()),
                         Qt::AlignVCenter | Qt::AlignRight, text(to_string(stream)));
        LanePainter(*this, painter, stream).paint();
    }
    for (const Omitted& omitted : lanes_.omitted())
        draw_omitted(painter, x_of(omitted.begin_s), x_of(omitted.end_s), lanes_.omitted_label(omitted));
    const int most = std::max(2, static_cast<int>(plot_rect().width() / 100));
    draw_bottom_axis(painter, time_ticks(begin_, end_, most), [this](double at) { return x_of(at); });
    draw_legend(painter);
}

std::vector<StreamLanesView::LegendEntry> StreamLanesView::legend() const {
    if (empty()) return {};
    std::set<QRgb> drawn;
    for (const Section& section : lanes_.step())
        for (const Operation& operation : section.operations)
            if (!std::holds_alternative<Allocate>(operation.body) &&
                !std::holds_alternative<Free>(operation.body))
                drawn.insert(operation_colour(operation, false).rgb());
    std::vector<LegendEntry> entries{
        {tr("forward"), compute_example(ComputePhase::forward)},
        {tr("recompute"), compute_example(ComputePhase::recompute)},
        {tr("backward"), compute_example(ComputePhase::backward)},
        {tr("optimizer"), example(OptimizerStep{})},
        {tr("gather"), collective_example(CollectiveKind::all_gather)},
        {tr("reduce"), collective_example(CollectiveKind::reduce_scatter)},
        {tr("accumulate"), example(Accumulate{})},
    };
    std::erase_if(entries, [&](const LegendEntry& entry) {
        return drawn.count(operation_colour(entry.like, false).rgb()) == 0;
    });
    return entries;
}

// In a narrow window the heading matters more, then the kinds in their order; hovering names every operation.
std::vector<StreamLanesView::LegendEntry> StreamLanesView::shown_legend() const {
    std::vector<LegendEntry> shown = legend_;
    while (!shown.empty() && heading_width() + 16 + legend_width(shown) >= width()) shown.pop_back();
    return shown;
}

int StreamLanesView::legend_width(const std::vector<LegendEntry>& entries) const {
    int width = 0;
    for (const LegendEntry& entry : entries)
        width += swatch + 5 + fontMetrics().horizontalAdvance(entry.name) + 12;
    return width;
}

int StreamLanesView::heading_reserve() const {
    return empty() ? 0 : legend_width(shown_legend());
}

void StreamLanesView::draw_legend(QPainter& painter) const {
    const std::vector<LegendEntry> shown = shown_legend();
    double x = width() - legend_width(shown) - 2;
    const double height = fontMetrics().height() + 6;
    painter.setPen(palette().color(QPalette::Text));
    for (const LegendEntry& entry : shown) {
        const double width = fontMetrics().horizontalAdvance(entry.name);
        painter.fillRect(QRectF(x, 2 + (height - swatch) / 2, swatch, swatch),
                         operation_colour(entry.like, dark()));
        painter.drawText(QRectF(x + swatch + 5, 2, width + 2, height), Qt::AlignVCenter | Qt::AlignLeft,
                         entry.name);
        x += swatch + 5 + width + 12;
    }
}

const TimedOperation* StreamLanesView::operation_at(QPointF position) const {
    if (empty() || position.x() < plot_rect().left() || position.x() > plot_rect().right()) return nullptr;
    for (const Stream stream : shown_streams())
        if (lane_rect(stream).contains(position))
            return lanes_.longest_within(stream, seconds_at(position.x() - 0.5),
                                         seconds_at(position.x() + 0.5));
    return nullptr;
}

std::optional<Description> StreamLanesView::describe_at(QPointF position) const {
    const TimedOperation* timed = operation_at(position);
    if (timed == nullptr) return std::nullopt;
    return lanes_.describe_operation(*timed);
}

void StreamLanesView::set_window(double begin_s, double end_s) {
    if (empty()) return update();
    const double whole = lanes_.end_s();
    const double span = std::clamp(end_s - begin_s, whole * 1e-6, whole);
    begin_ = std::clamp(begin_s, 0.0, whole - span);
    end_ = begin_ + span;
    announce(tr("%1 operations, showing %2 to %3 of %4")
                 .arg(lanes_.operation_count())
                 .arg(text(format_seconds(begin_)), text(format_seconds(end_)), text(format_seconds(whole))));
    update();
    Q_EMIT window_changed(begin_, end_);
}

void StreamLanesView::zoom(double factor, double x) {
    const double fixed = seconds_at(x);
    set_window(fixed - (fixed - begin_) * factor, fixed + (end_ - fixed) * factor);
}

void StreamLanesView::wheelEvent(QWheelEvent* event) {
    if (empty()) return PlotView::wheelEvent(event);
    zoom(std::pow(0.999, event->angleDelta().y()), event->position().x());
    event->accept();
}

void StreamLanesView::mousePressEvent(QMouseEvent* event) {
    drag_x_ = event->position().x();
    if (!empty() && event->button() == Qt::LeftButton) setCursor(Qt::ClosedHandCursor);
}

void StreamLanesView::mouseMoveEvent(QMouseEvent* event) {
    PlotView::mouseMoveEvent(event);
    if (empty() || !(event->buttons() & Qt::LeftButton)) return;
    const double shift = seconds_at(drag_x_) - seconds_at(event->position().x());
    drag_x_ = event->position().x();
    set_window(begin_ + shift, end_ + shift);
}

void StreamLanesView::mouseReleaseEvent(QMouseEvent*) {
    unsetCursor();
}

void StreamLanesView::mouseDoubleClickEvent(QMouseEvent* event) {
    if (!empty()) zoom(0.25, event->position().x());
}

void StreamLanesView::keyPressEvent(QKeyEvent* event) {
    const double span = end_ - begin_, middle = plot_rect().center().x();
    switch (empty() ? 0 : event->key()) {
        case Qt::Key_Plus:
        case Qt::Key_Equal:
        case Qt::Key_W:
            return zoom(0.7, middle);
        case Qt::Key_Minus:
        case Qt::Key_S:
            return zoom(1 / 0.7, middle);
        case Qt::Key_Left:
        case Qt::Key_A:
            return set_window(begin_ - span / 5, end_ - span / 5);
        case Qt::Key_Right:
        case Qt::Key_D:
            return set_window(begin_ + span / 5, end_ + span / 5);
        case Qt::Key_Home:
        case Qt::Key_F:
            return show_all();
        default:
            PlotView::keyPressEvent(event);
    }
}

}  // namespace zeroplan::gui
