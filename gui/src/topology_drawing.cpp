#include "zeroplan/gui/topology_drawing.hpp"

#include <algorithm>
#include <set>

#include "topology_sketch.hpp"
#include "zeroplan/gui/text.hpp"

namespace zeroplan::gui {

namespace {

constexpr double legend_units = 1.5, zoom_units = 1.5;  // lines, units
constexpr double largest_unit = 2.3;                    // lines: more would be empty
constexpr double least_labels = 118, most_labels = 236, share_of_labels = 0.24, margin = 10;  // pixels

std::vector<std::uint64_t> colours_in(const TopologyDrawing& drawing) {
    std::set<std::uint64_t> drawn;
    for (const DrawnBox& box : drawing.boxes)
        if (box.role == BoxRole::gpu || box.role == BoxRole::cells) drawn.insert(box.colour);
    return {drawn.begin(), drawn.end()};
}

}  // namespace

Topology topology_of(const Planned& planned, const std::vector<LinkLoad>& loads) {
    return {planned.plan->scenario.cluster, degrees_of(*planned.plan), planned.what_if, planned.sites,
            link_classes(planned, loads),   planned.sources.mesh};
}

std::uint64_t node_of(const Straggler& straggler, const ClusterSpec& cluster) {
    return straggler.rank / cluster.gpus_per_node;
}

std::uint64_t node_of(const SlowLink& link, const ClusterSpec& cluster) {
    return link.kind == SlowLinkKind::node ? link.index : link.index / cluster.gpus_per_node;
}

std::uint64_t rank_worth_showing(const Topology& topology, std::uint64_t rank) {
    const ClusterSpec& cluster = topology.cluster;
    if (node_factor(topology, rank / cluster.gpus_per_node) < 1) return rank;
    std::optional<std::uint64_t> first;
    const auto see = [&](std::uint64_t slow, double factor) {
        if (factor < 1) first = std::min(slow, first.value_or(slow));
    };
    for (const Straggler& straggler : topology.what_if.stragglers) see(straggler.rank, straggler.factor);
    for (const SlowLink& link : topology.what_if.slow_links)
        see(link.kind == SlowLinkKind::node ? link.index * cluster.gpus_per_node : link.index, link.factor);
    return std::min(first.value_or(rank), cluster.gpus_used - 1);
}

TopologyDrawing topology_drawing(const Topology& topology, const QRectF& room, double line,
                                 std::uint64_t rank) {
    TopologyDrawing drawing;
    const bool network = nodes_in_use(topology.cluster) > 1;
    const double labels = std::clamp(room.width() * share_of_labels, least_labels, most_labels);
    Sketch sketch{topology, drawing};
    sketch.label_left = room.left() + margin;
    sketch.label_width = labels - margin;
    sketch.left = room.left() + labels + margin;
    sketch.right = room.right() - margin;
    sketch.rank = std::min(rank, topology.cluster.gpus_used - 1);
    sketch.node = sketch.rank / topology.cluster.gpus_per_node;

    drawing.legend_rect = {room.left() + margin, room.bottom() - legend_units * line,
                           room.width() - 2 * margin, legend_units * line};
    const double units = node_units(topology, sketch.width()) +
                         (network ? fabric_units(topology, sketch.width()) + zoom_units : 0);
    const double height = drawing.legend_rect.top() - room.top() - 6;
    sketch.unit = std::min(largest_unit * line, height / units);
    double y = room.top() + (height - units * sketch.unit) / 2;
    QRectF small;
    if (network) {
        small = draw_fabric(sketch, y);
        y += (fabric_units(topology, sketch.width()) + zoom_units) * sketch.unit;
    }
    const QRectF frame = draw_node(sketch, y);
    if (network) drawing.zoom = {small.bottomLeft(), frame.topLeft(), small.bottomRight(), frame.topRight()};
    drawing.legend = colours_in(drawing);
    return drawing;
}

QString topology_title(const Topology& topology) {
    const ClusterSpec& cluster = topology.cluster;
    const std::uint64_t nodes = nodes_in_use(cluster);
    QStringList parts;
    if (!cluster.topology.empty()) parts << text(cluster.topology);
    parts << QObject::tr(cluster.gpu.is_host      ? "%1 processes"
                         : cluster.gpus_used == 1 ? "%1 GPU"
                                                  : "%1 GPUs")
                 .arg(text(format_count(cluster.gpus_used)));
    if (nodes > 1) {
        parts << QObject::tr("%1 nodes").arg(text(format_count(nodes)));
        parts << text(describe(fabric_of(topology.what_if), topology.what_if.placement));
    }
    return parts.join(", ");
}

}  // namespace zeroplan::gui
