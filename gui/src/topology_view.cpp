#include "zeroplan/gui/topology_view.hpp"

#include <QKeyEvent>
#include <QLineF>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "topology_painter.hpp"
#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {

namespace {

constexpr double near_a_link = 5;  // pixels

double distance(const DrawnLink& link, QPointF position) {
    const QPointF along = link.to - link.from, to = position - link.from;
    const double length = QPointF::dotProduct(along, along);
    const double t = length > 0 ? std::clamp(QPointF::dotProduct(to, along) / length, 0.0, 1.0) : 0;
    return QLineF(position, link.from + t * along).length();
}

// What only frames others says nothing of its own.
bool is_answer(const DrawnBox& box) {
    return box.role != BoxRole::frame && box.role != BoxRole::cells && box.role != BoxRole::tensor_group;
}

QString what_is_slow_in(const Topology& topology, std::uint64_t node) {
    QStringList said;
    for (const Straggler& straggler : topology.what_if.stragglers)
        if (node_of(straggler, topology.cluster) == node) said << as_sentence(text(describe(straggler)));
    for (const SlowLink& link : topology.what_if.slow_links)
        if (node_of(link, topology.cluster) == node) said << as_sentence(text(describe(link)));
    return said.join(' ');
}

}  // namespace

TopologyView::TopologyView(QWidget* parent) : PlotView(parent) {
    setAccessibleName(tr("Cluster"));
    set_heading(tr("Cluster"));
    setMinimumSize(360, 260);
}

void TopologyView::set_topology(const Topology& topology) {
    topology_ = topology;
    rank_ = std::min(rank_, topology.cluster.gpus_used - 1);
    set_heading(tr("Cluster"), topology_title(topology));
    layout_changed();
    say_what_is_drawn();
    update();
}

void TopologyView::select_rank(std::uint64_t rank) {
    if (empty() || rank == rank_) return;
    rank_ = std::min(rank, topology_->cluster.gpus_used - 1);
    layout_changed();
    say_what_is_drawn();
    update();
}

void TopologyView::layout_changed() {
    if (!topology_) return;
    const double heading = fontMetrics().height() + 12;
    const QRectF room(0, heading, width(), std::max(1.0, height() - heading - 4));
    drawing_ = topology_drawing(*topology_, room, fontMetrics().height(), rank_);
}

void TopologyView::changeEvent(QEvent* event) {
    PlotView::changeEvent(event);
    if (event->type() == QEvent::FontChange) layout_changed();
}

// All that can be seen, for who can't: the selected rank, then every class of links.
void TopologyView::say_what_is_drawn() {
    QStringList said{topology_title(*topology_), plain_text(describe_rank(rank_))};
    for (const LinkClass& one : topology_->links) {
        QString words = one.name + ": " + one.rate;
        if (one.utilisation) words += tr(", busy %1 of the step").arg(percent(*one.utilisation));
        said << words;
    }
    announce(said.join('\n'));
}

void TopologyView::draw(QPainter& painter) {
    Painter(*this, painter).paint();
}

const DrawnBox* TopologyView::box_at(QPointF position) const {
    const auto found = std::find_if(drawing_.boxes.rbegin(), drawing_.boxes.rend(), [&](const DrawnBox& box) {
        return is_answer(box) && box.rect.contains(position);
    });
    return found == drawing_.boxes.rend() ? nullptr : &*found;
}

const LinkClass* TopologyView::class_at(QPointF position) const {
    for (const DrawnLabel& label : drawing_.labels)
        if (label.rect.contains(position)) return find_class(topology_->links, label.link);
    const auto nearest = std::min_element(drawing_.links.begin(), drawing_.links.end(),
                                          [&](const DrawnLink& a, const DrawnLink& b) {
                                              return distance(a, position) < distance(b, position);
                                          });
    if (nearest == drawing_.links.end() || distance(*nearest, position) > near_a_link) return nullptr;
    return find_class(topology_->links, nearest->link);
}

Description TopologyView::describe_rank(std::uint64_t rank) const {
    const Degrees& degrees = topology_->degrees;
    const std::uint64_t node = rank / topology_->cluster.gpus_per_node;
    Description said{tr("rank %1").arg(text(format_count(rank))), {}, {}};
    said.rows.push_back(
        {tr("GPU"), text(topology_->cluster.gpu.name), group_colour(colour_of(degrees, rank), dark())});
    said.rows.push_back({tr("node"), text(format_count(node)), {}});
    if (node < topology_->sites.job.size())
        said.rows.push_back({tr("node of the fabric"), text(format_count(topology_->sites.job[node])), {}});
    const RankPosition at = rank_position(degrees, rank);
    const auto row = [&](const QString& label, std::uint64_t index, std::uint64_t degree) {
        if (degree > 1)
            said.rows.push_back(
                {label, tr("%1 of %2").arg(text(format_count(index)), text(format_count(degree))), {}});
    };
    row(tr("tensor-parallel rank"), at.tensor, degrees.tensor);
    row(tr("context-parallel rank"), at.context, degrees.context);
    row(tr("pipeline stage"), at.stage, degrees.stages);
    row(tr("data-parallel rank"), at.data, degrees.data);
    row(tr("replica of the shard group"), at.replica, degrees.replicas());
    for (const Straggler& straggler : topology_->what_if.stragglers)
        if (straggler.rank == rank) said.closing = as_sentence(text(describe(straggler)));
    return said;
}

Description TopologyView::describe_box(const DrawnBox& box) const {
    if (box.role == BoxRole::gpu) return describe_rank(*box.rank);
    if (box.link)
        if (const LinkClass* one = find_class(topology_->links, *box.link)) {
            Description said = one->description;
            if (box.factor < 1)
                said.rows.push_back({tr("this one"), tr("at %1 of that").arg(box.factor), {}});
            return said;
        }
    Description said{QStringList{box.text, box.details.join(' ')}.join(' ').trimmed(), {}, {}};
    if (box.slow > 0) said.rows.push_back({tr("with something slow"), text(format_count(box.slow)), {}});
    const std::uint64_t per_node = topology_->cluster.gpus_per_node;
    if (box.node) {
        const std::uint64_t last = std::min((*box.node + 1) * per_node, topology_->cluster.gpus_used) - 1;
        said.rows.push_back(
            {tr("ranks"),
             tr("%1 to %2").arg(text(format_count(*box.node * per_node)), text(format_count(last))),
             {}});
        said.closing = what_is_slow_in(*topology_, *box.node);
    }
    return said;
}

std::optional<Description> TopologyView::describe_at(QPointF position) const {
    if (empty()) return std::nullopt;
    if (const DrawnBox* box = box_at(position)) return describe_box(*box);
    if (const LinkClass* one = class_at(position)) return one->description;
    return std::nullopt;
}

void TopologyView::choose(std::uint64_t rank) {
    const std::uint64_t wanted = std::min(rank, topology_->cluster.gpus_used - 1);
    if (wanted == rank_) return;
    select_rank(wanted);
    Q_EMIT rank_selected(rank_);
}

void TopologyView::mousePressEvent(QMouseEvent* event) {
    PlotView::mousePressEvent(event);
    if (empty() || event->button() != Qt::LeftButton) return;
    const DrawnBox* box = box_at(event->position());
    if (box == nullptr) return;
    if (box->rank)
        choose(*box->rank);
    else if (box->node)
        choose(*box->node * topology_->cluster.gpus_per_node);
}

void TopologyView::keyPressEvent(QKeyEvent* event) {
    if (empty()) return PlotView::keyPressEvent(event);
    const std::uint64_t node = topology_->cluster.gpus_per_node;
    const auto back = [&](std::uint64_t by) { choose(rank_ >= by ? rank_ - by : 0); };
    switch (event->key()) {
        case Qt::Key_Left:
            return back(1);
        case Qt::Key_Right:
            return choose(rank_ + 1);
        case Qt::Key_PageUp:
            return back(node);
        case Qt::Key_PageDown:
            return choose(rank_ + node);
        case Qt::Key_Home:
            return choose(0);
        case Qt::Key_End:
            return choose(topology_->cluster.gpus_used - 1);
        default:
            PlotView::keyPressEvent(event);
    }
}

}  // namespace zeroplan::gui
