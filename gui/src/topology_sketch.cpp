#include "topology_sketch.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace zeroplan::gui {

namespace {

std::optional<std::uint64_t> place_in(const std::vector<std::uint64_t>& nodes, std::uint64_t node) {
    const auto found = std::find(nodes.begin(), nodes.end(), node);
    if (found == nodes.end()) return std::nullopt;
    return static_cast<std::uint64_t>(found - nodes.begin());
}

// Which node of the job it is.
std::optional<std::uint64_t> job_node(const Topology& topology, std::uint64_t fabric_node) {
    if (topology.sites.nodes > 0) return place_in(topology.sites.job, fabric_node);
    if (fabric_node < nodes_in_use(topology.cluster)) return fabric_node;
    return std::nullopt;
}

// Its GPUs in one to four rows, ranks of one colour in a piece.
void draw_cells(const Sketch& sketch, const QRectF& area, std::uint64_t node) {
    const std::uint64_t gpus = sketch.topology.cluster.gpus_per_node;
    const std::uint64_t rows = gpus > 32 ? 4 : gpus > 8 ? 2 : 1, columns = (gpus + rows - 1) / rows;
    const double width = area.width() / static_cast<double>(columns);
    const double height = area.height() / static_cast<double>(rows);
    const auto colour = [&](std::uint64_t gpu) {
        return colour_of(sketch.topology.degrees, node * gpus + gpu);
    };
    for (std::uint64_t row = 0; row < rows; ++row) {
        const std::uint64_t end = std::min(gpus, (row + 1) * columns);
        for (std::uint64_t first = row * columns; first < end;) {
            std::uint64_t last = first;
            while (last + 1 < end && colour(last + 1) == colour(first)) ++last;
            const double x = area.left() + width * static_cast<double>(first - row * columns);
            sketch
                .box(BoxRole::cells, {x, area.top() + height * static_cast<double>(row),
                                      width * static_cast<double>(last - first + 1), height})
                .colour = colour(first);
            first = last + 1;
        }
    }
}

}  // namespace

DrawnBox& Sketch::box(BoxRole role, const QRectF& rect, const QString& text) const {
    drawing.boxes.push_back({role, rect, text});
    return drawing.boxes.back();
}

void Sketch::link(LinkKind kind, QPointF from, QPointF to, double factor) const {
    drawing.links.push_back({from, to, kind, factor});
}

void Sketch::label(LinkKind kind, double top, double bottom) const {
    if (find_class(topology.links, kind) == nullptr) return;
    drawing.labels.push_back({QRectF(label_left, top, label_width, bottom - top), kind});
}

bool draw_small_node(const Sketch& sketch, const QRectF& rect, std::uint64_t fabric_node) {
    const auto node = job_node(sketch.topology, fabric_node);
    if (!node) {
        const bool other = place_in(sketch.topology.sites.background, fabric_node).has_value();
        sketch.box(other ? BoxRole::other_node : BoxRole::free_node, rect,
                   other ? QObject::tr("other") : QObject::tr("free"));
        return false;
    }
    DrawnBox& box = sketch.box(BoxRole::node, rect, QObject::tr("node %1").arg(*node));
    box.node = *node;
    box.factor = node_factor(sketch.topology, *node);
    const QRectF cells(rect.left() + 4, rect.top() + 4, rect.width() - 8,
                       std::max(2.0, rect.height() * 0.42 - 3));
    draw_cells(sketch, cells, *node);
    return *node == sketch.node;
}

double speed_of(const WhatIf& what_if, std::uint64_t rank) {
    for (const Straggler& straggler : what_if.stragglers)
        if (straggler.rank == rank) return straggler.factor;
    return 1;
}

double gpu_link_factor(const WhatIf& what_if, std::uint64_t rank) {
    for (const SlowLink& link : what_if.slow_links)
        if (link.kind == SlowLinkKind::gpu && link.index == rank) return link.factor;
    return 1;
}

double nic_factor(const WhatIf& what_if, std::uint64_t rank, std::uint64_t node) {
    double factor = 1;
    for (const SlowLink& link : what_if.slow_links)
        if ((link.kind == SlowLinkKind::nic && link.index == rank) ||
            (link.kind == SlowLinkKind::node && link.index == node))
            factor *= link.factor;
    return factor;
}

double node_nic_factor(const Topology& topology, std::uint64_t node) {
    double factor = 1;
    for (const SlowLink& link : topology.what_if.slow_links) {
        const bool whole = link.kind == SlowLinkKind::node && link.index == node;
        const bool one =
            link.kind == SlowLinkKind::nic && link.index / topology.cluster.gpus_per_node == node;
        if (whole || one) factor = std::min(factor, link.factor);
    }
    return factor;
}

double node_factor(const Topology& topology, std::uint64_t node) {
    double factor = 1;
    for (const Straggler& straggler : topology.what_if.stragglers)
        if (node_of(straggler, topology.cluster) == node) factor = std::min(factor, straggler.factor);
    for (const SlowLink& link : topology.what_if.slow_links)
        if (node_of(link, topology.cluster) == node) factor = std::min(factor, link.factor);
    return factor;
}

std::vector<std::uint64_t> slow_fabric_nodes(const Topology& topology) {
    std::set<std::uint64_t> slow;
    const auto add = [&](std::uint64_t node, double factor) {
        if (factor < 1) slow.insert(node < topology.sites.job.size() ? topology.sites.job[node] : node);
    };
    for (const Straggler& straggler : topology.what_if.stragglers)
        add(node_of(straggler, topology.cluster), straggler.factor);
    for (const SlowLink& link : topology.what_if.slow_links)
        add(node_of(link, topology.cluster), link.factor);
    return {slow.begin(), slow.end()};
}

}  // namespace zeroplan::gui
