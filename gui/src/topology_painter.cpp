#include "topology_painter.hpp"

#include <algorithm>
#include <cmath>

#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {

namespace {

constexpr double corner = 3, widest_link = 4;
constexpr int swatch = 10;

// "at 0.8"; of what stands for many nodes how many of them are slow.
QString slow_words(const DrawnBox& box) {
    return box.slow > 0 ? QObject::tr("%1 slow").arg(box.slow) : QObject::tr("at %1").arg(box.factor);
}

bool is_slow(const DrawnBox& box) {
    return box.factor < 1 || box.slow > 0;
}

}  // namespace

TopologyView::Painter::Painter(const TopologyView& view, QPainter& painter)
    : view_(view),
      painter_(painter),
      dark_(view.dark()),
      ink_(view.palette().color(QPalette::Text)),
      ground_(view.palette().color(QPalette::Base)) {}

double TopologyView::Painter::line() const {
    return view_.fontMetrics().height();
}

QColor TopologyView::Painter::faint(int alpha) const {
    QColor colour = ink_;
    colour.setAlpha(alpha);
    return colour;
}

QColor TopologyView::Painter::link_colour(LinkKind kind, double factor) const {
    if (factor < 1) return overflow_colour(dark_);
    const LinkClass* one = find_class(view_.topology_->links, kind);
    return one != nullptr && one->utilisation ? load_colour(*one->utilisation, dark_)
                                              : runtime_colour(!dark_);
}

void TopologyView::Painter::paint() {
    painter_.setRenderHint(QPainter::Antialiasing);
    paint_zoom();
    const auto& boxes = view_.drawing_.boxes;
    const auto is_frame = [](const DrawnBox& box) { return box.role == BoxRole::frame; };
    for (const DrawnBox& box : boxes)  // on the ground that links are drawn on
        if (is_frame(box)) paint_box(box);
    for (const DrawnLink& link : view_.drawing_.links) paint_link(link);
    for (const DrawnBox& box : boxes)
        if (!is_frame(box)) paint_box(box);
    for (const DrawnBox& box : boxes)  // over its cells, which come after it
        if (box.role == BoxRole::node && is_slow(box)) paint_factor(box);
    for (const DrawnLabel& label : view_.drawing_.labels) paint_label(label);
    painter_.setRenderHint(QPainter::Antialiasing, false);
    paint_legend();
}

void TopologyView::Painter::paint_zoom() {
    const auto& ends = view_.drawing_.zoom;
    if (ends.size() != 4) return;
    const QPointF cone[] = {ends[0], ends[1], ends[3], ends[2]};
    painter_.setPen(QPen(faint(60), 1, Qt::DotLine));
    painter_.setBrush(faint(14));
    painter_.drawPolygon(cone, 4);
}

void TopologyView::Painter::paint_link(const DrawnLink& link) {
    const LinkClass* one = find_class(view_.topology_->links, link.link);
    const double load = one != nullptr ? one->utilisation.value_or(0) : 0;
    QPen pen(link_colour(link.link, link.factor), 1 + (widest_link - 1) * std::min(1.0, load));
    if (link.factor < 1) {
        pen.setStyle(Qt::DashLine);
        pen.setWidthF(std::max(2.0, pen.widthF()));
    }
    painter_.setPen(pen);
    painter_.drawLine(link.from, link.to);
}

// Outline, fill and words' ink of a box, by what it stands for.
TopologyView::Painter::BoxColours TopologyView::Painter::colours_of(const DrawnBox& box) const {
    const QPen plain(faint(110), 1);
    switch (box.role) {
        case BoxRole::frame:
            return {QPen(faint(110), 1.5), ground_, ink_};
        case BoxRole::gpu:
        case BoxRole::cells: {
            const QColor group = group_colour(box.colour, dark_);
            return {box.role == BoxRole::cells ? QPen(Qt::NoPen) : plain, group, ink_on(group)};
        }
        case BoxRole::host:
            return {plain, faint(20), ink_};
        case BoxRole::nic:
            return {plain, ground_, ink_};
        case BoxRole::bus:
        case BoxRole::fabric_switch:
            return {box.link ? QPen(link_colour(*box.link, box.factor), 1.5) : plain,
                    view_.palette().color(QPalette::AlternateBase), ink_};
        case BoxRole::node:
            return {is_shown(box) ? QPen(ink_, 2) : plain, ground_, ink_};
        case BoxRole::other_node:
            return {plain, QBrush(faint(60), Qt::BDiagPattern), ink_};
        case BoxRole::more:
        case BoxRole::free_node:
        case BoxRole::idle_gpu:
            return {QPen(faint(110), 1, Qt::DashLine),
                    box.role == BoxRole::more ? QBrush(ground_) : QBrush(Qt::NoBrush),
                    view_.palette().color(QPalette::PlaceholderText)};
        case BoxRole::tensor_group:
            return {QPen(faint(150), 1.2), Qt::NoBrush, ink_};
    }
    return {plain, Qt::NoBrush, ink_};
}

bool TopologyView::Painter::is_shown(const DrawnBox& box) const {
    return box.node == view_.rank_ / view_.topology_->cluster.gpus_per_node;
}

void TopologyView::Painter::paint_box(const DrawnBox& box) {
    const BoxColours colours = colours_of(box);
    painter_.setPen(colours.outline);
    painter_.setBrush(colours.fill);
    if (box.role == BoxRole::cells)
        painter_.fillRect(box.rect, colours.fill);
    else
        painter_.drawRoundedRect(box.rect, corner, corner);
    const bool slow_own_node = box.role == BoxRole::node && is_slow(box) && is_shown(box);
    if (slow_own_node || (box.role == BoxRole::gpu && box.rank == view_.rank_)) {
        painter_.setPen(QPen(ink_, 2));
        painter_.setBrush(Qt::NoBrush);
        painter_.drawRoundedRect(box.rect.adjusted(-2, -2, 2, 2), corner, corner);
    }
    paint_words(box, colours.ink);
    if (is_slow(box) && box.role != BoxRole::node) paint_factor(box);
}

// In the middle, of a node whole at the bottom and of a small one below its cells; what there is no room for
// is in the tooltip.
void TopologyView::Painter::paint_words(const DrawnBox& box, const QColor& ink) {
    QRectF area = box.rect.adjusted(2, 0, -2, 0);
    if (box.role == BoxRole::frame) area.setTop(area.bottom() - 1.4 * line());
    if (box.role == BoxRole::node) area.setTop(box.rect.top() + box.rect.height() * 0.44);
    if ((box.role == BoxRole::gpu || box.role == BoxRole::more) && is_slow(box))
        area.setBottom(area.bottom() - 1.1 * line());
    const QStringList lines = lines_of(box, area);
    if (lines.isEmpty()) return;
    painter_.setPen(ink);
    painter_.drawText(area, Qt::AlignCenter | Qt::TextDontClip, lines.join('\n'));
}

// As many as fit: the text, of a node its last word if need be ("node 12" → "12"), then details, as many in a
// line as go there.
QStringList TopologyView::Painter::lines_of(const DrawnBox& box, const QRectF& area) const {
    const QFontMetricsF metrics(view_.font());
    const auto fits = [&](const QString& words) { return metrics.horizontalAdvance(words) <= area.width(); };
    const bool in_short = box.role == BoxRole::node || box.role == BoxRole::more;
    const auto fitted = [&](const QString& words) {
        if (fits(words)) return words;
        if (in_short) return words.section(' ', -1);
        return box.role == BoxRole::host ? metrics.elidedText(words, Qt::ElideRight, area.width()) : words;
    };
    const auto most = static_cast<qsizetype>(area.height() / line() + 0.2);
    if (most < 1 || box.text.isEmpty() || !fits(fitted(box.text))) return {};
    QStringList lines{fitted(box.text)}, more;
    for (const QString& detail : box.details) {
        const QString words = fitted(detail);
        if (!fits(words)) return lines;
        if (!more.isEmpty() && fits(more.back() + ' ' + words))
            more.back() += ' ' + words;
        else
            more << words;
    }
    return 1 + more.size() <= most ? lines + more : lines;
}

// What is slow says so, in words beside its colour.
void TopologyView::Painter::paint_factor(const DrawnBox& box) {
    QColor hatch = overflow_colour(dark_);
    hatch.setAlpha(110);
    QFont small = view_.font();
    small.setBold(true);
    painter_.setPen(QPen(overflow_colour(dark_), 2));
    painter_.setBrush(box.role == BoxRole::gpu ? QBrush(hatch, Qt::BDiagPattern) : QBrush(Qt::NoBrush));
    painter_.drawRoundedRect(box.rect, corner, corner);
    if (box.role == BoxRole::bus) return;
    painter_.setFont(small);
    const QString words = slow_words(box);
    const double width = QFontMetricsF(small).horizontalAdvance(words) + 6;
    QRectF tag(0, 0, std::min(width, box.rect.width()), line());
    tag.moveCenter(box.rect.center());
    if (box.role == BoxRole::gpu || box.role == BoxRole::more) tag.moveBottom(box.rect.bottom() - 2);
    if (box.role == BoxRole::node) tag.moveTop(box.rect.top() + 2);
    painter_.fillRect(tag, ground_);
    painter_.setPen(overflow_colour(dark_));
    painter_.drawText(tag, Qt::AlignCenter, words);
    painter_.setFont(view_.font());
}

void TopologyView::Painter::paint_label(const DrawnLabel& label) {
    const LinkClass* one = find_class(view_.topology_->links, label.link);
    if (one == nullptr) return;
    QStringList lines{one->name, one->rate};
    if (one->utilisation) lines << tr("busy %1 of the step").arg(percent(*one->utilisation));
    const auto room = static_cast<qsizetype>(std::max(1.0, std::floor(label.rect.height() / line() + 0.35)));
    if (room == 1)
        lines = {one->name + ", " + one->rate};
    else
        lines = lines.mid(0, room);
    const double height = line() * static_cast<double>(lines.size());
    QRectF area(label.rect.left() + 8, label.rect.center().y() - height / 2, label.rect.width() - 8, line());
    painter_.fillRect(QRectF(label.rect.left(), area.top() + 2, 3, height - 4), link_colour(label.link, 1));
    QFont bold = view_.font();
    bold.setBold(true);
    for (qsizetype i = 0; i < lines.size(); ++i, area.translate(0, line())) {
        painter_.setFont(i == 0 ? bold : view_.font());
        painter_.setPen(i == 0 ? ink_ : view_.palette().color(QPalette::PlaceholderText));
        painter_.drawText(area, Qt::AlignLeft | Qt::AlignVCenter,
                          QFontMetrics(painter_.font())
                              .elidedText(lines[i], Qt::ElideRight, static_cast<int>(area.width())));
    }
    painter_.setFont(view_.font());
}

// At the right, where there are loads; the pixel where it begins.
double TopologyView::Painter::paint_load_scale() {
    const QRectF area = view_.drawing_.legend_rect;
    const auto& links = view_.topology_->links;
    if (std::none_of(links.begin(), links.end(),
                     [](const LinkClass& l) { return l.utilisation.has_value(); }))
        return area.right();
    const QString from = tr("links idle"), to = tr("full");
    const double width = 70, ends = view_.fontMetrics().horizontalAdvance(to) + 6;
    const double left = area.right() - ends - width;
    for (int i = 0; i < static_cast<int>(width); ++i)
        painter_.fillRect(QRectF(left + i, area.center().y() - 4, 1, 8), load_colour(i / width, dark_));
    painter_.setPen(ink_);
    painter_.drawText(QRectF(left + width + 6, area.top(), ends, area.height()),
                      Qt::AlignLeft | Qt::AlignVCenter, to);
    const double words = view_.fontMetrics().horizontalAdvance(from) + 6;
    painter_.drawText(QRectF(left - words, area.top(), words, area.height()),
                      Qt::AlignLeft | Qt::AlignVCenter, from);
    return left - words - 12;
}

void TopologyView::Painter::paint_legend() {
    const QRectF area = view_.drawing_.legend_rect;
    const double end = paint_load_scale(), ellipsis = 14;
    double x = area.left();
    for (const std::uint64_t colour : view_.drawing_.legend) {
        const QString name = colour_name(view_.topology_->degrees, colour);
        const double width = swatch + 5 + view_.fontMetrics().horizontalAdvance(name) + 12;
        painter_.setPen(ink_);
        if (x + width > end - ellipsis) {
            painter_.drawText(QRectF(x, area.top(), ellipsis, area.height()), Qt::AlignVCenter, "…");
            return;
        }
        painter_.fillRect(QRectF(x, area.center().y() - swatch / 2.0, swatch, swatch),
                          group_colour(colour, dark_));
        painter_.drawText(QRectF(x + swatch + 5, area.top(), width, area.height()), Qt::AlignVCenter, name);
        x += width;
    }
}

}  // namespace zeroplan::gui
