#pragma once
#include <QPointF>
#include <QRectF>
#include <QStringList>
#include <optional>
#include <vector>

#include "zeroplan/gui/link_classes.hpp"
#include "zeroplan/gui/rank_position.hpp"

namespace zeroplan::gui {

/// What a drawing of a cluster is made from.
struct Topology {
    ClusterSpec cluster;
    Degrees degrees;
    WhatIf what_if;
    FabricSites sites;  ///< nothing on a single switch
    std::vector<LinkClass> links;
    std::vector<MeshLinks> mesh{};  ///< pairs of a node's GPUs, where its topology states them
};
Topology topology_of(const Planned& planned, const std::vector<LinkLoad>& loads);

enum class BoxRole : std::uint8_t {
    frame,     ///< around the node that is drawn whole
    gpu,       ///< a rank's
    idle_gpu,  ///< no rank's
    nic,
    host,
    bus,           ///< NVSwitch, mesh, bridge: what joins GPUs
    tensor_group,  ///< around ranks that split a layer
    fabric_switch,
    node,        ///< of this job, in small
    cells,       ///< ranks of one colour in a small node
    other_node,  ///< of the job in the background
    free_node,
    more  ///< stands for what is not drawn
};

struct DrawnBox {
    BoxRole role = BoxRole::node;
    QRectF rect;
    QString text;
    QStringList details{};                ///< below it, as many as there is room for
    std::optional<std::uint64_t> rank{};  ///< gpu, nic
    std::optional<std::uint64_t> node{};  ///< of the job: frame, node
    std::optional<LinkKind> link{};       ///< bus, nic, fabric_switch: what it belongs to
    std::uint64_t colour = 0;             ///< colour_of(): gpu, cells
    double factor = 1;                    ///< of its speed: gpu, nic; of the slowest thing in it: node
    std::uint64_t slow = 0;               ///< nodes with something slow among those it stands for: more
    friend bool operator==(const DrawnBox&, const DrawnBox&) = default;
};

struct DrawnLink {
    QPointF from, to;
    LinkKind link = LinkKind::gpu;
    double factor = 1;  ///< of its bandwidth
    friend bool operator==(const DrawnLink&, const DrawnLink&) = default;
};

/// Words at the left, beside the links that they are about.
struct DrawnLabel {
    QRectF rect;
    LinkKind link = LinkKind::gpu;
    friend bool operator==(const DrawnLabel&, const DrawnLabel&) = default;
};

/// A cluster in pixels: the fabric above, nodes in small, and one node whole. What doesn't fit is folded, so
/// that there are never more boxes than pixels have room for, however many ranks there are.
struct TopologyDrawing {
    std::vector<DrawnBox> boxes;  ///< later ones on top
    std::vector<DrawnLink> links;
    std::vector<DrawnLabel> labels;
    std::vector<QPointF> zoom;          ///< pairs of ends: from a node in small to the whole one
    std::vector<std::uint64_t> legend;  ///< colours that stand in the drawing, in order
    QRectF legend_rect;
    friend bool operator==(const TopologyDrawing&, const TopologyDrawing&) = default;
};

/// The node of the job that the slow GPU or links are in.
std::uint64_t node_of(const Straggler& straggler, const ClusterSpec& cluster);
std::uint64_t node_of(const SlowLink& link, const ClusterSpec& cluster);
/// The first rank of those that a what-if slows, if the node of `rank` has none of them; else `rank`.
std::uint64_t rank_worth_showing(const Topology& topology, std::uint64_t rank);

/// Of the node that `rank` is on, within `room`; text lines are `line` pixels high.
TopologyDrawing topology_drawing(const Topology& topology, const QRectF& room, double line,
                                 std::uint64_t rank);

/// "dgx-h100, 128 nodes of 8 GPUs, leaf switches of 32 nodes, …".
QString topology_title(const Topology& topology);

}  // namespace zeroplan::gui
