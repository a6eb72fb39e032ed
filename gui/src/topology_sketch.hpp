#pragma once
#include "zeroplan/gui/topology_drawing.hpp"

namespace zeroplan::gui {

/// A drawing while it is made: what goes into it, its measures, and what all parts of it ask.
struct Sketch {
    const Topology& topology;
    TopologyDrawing& drawing;
    double left = 0, right = 0;  ///< of everything but the labels
    double label_left = 0, label_width = 0;
    double unit = 16;                  ///< heights are multiples of it: a line of text where there is room
    std::uint64_t node = 0, rank = 0;  ///< the node of the job that is drawn whole, and the rank it is about

    double width() const { return right - left; }
    DrawnBox& box(BoxRole role, const QRectF& rect, const QString& text = {}) const;
    void link(LinkKind kind, QPointF from, QPointF to, double factor = 1) const;
    /// Beside what is between `top` and `bottom`, if the cluster has such links.
    void label(LinkKind kind, double top, double bottom) const;
};

/// Heights in units.
double node_units(const Topology& topology, double width);
/// Draws the node whole from `top` on; its frame.
QRectF draw_node(const Sketch& sketch, double top);

/// NVLinks between pairs of GPUs that stand in one row of `cell` pixels each from `left` on, below `y`.
double mesh_units(const Topology& topology);
void draw_mesh(const Sketch& sketch, double left, double y, double cell);

double fabric_units(const Topology& topology, double width);
/// Draws the fabric and its nodes in small from `top` on; the box that stands for the sketch's node.
QRectF draw_fabric(const Sketch& sketch, double top);

double torus_units(const Topology& topology, double width);
QRectF draw_torus(const Sketch& sketch, double top);

/// A node of the fabric in small: of this job, of the other one, or free. True if it is the sketch's node.
bool draw_small_node(const Sketch& sketch, const QRectF& rect, std::uint64_t fabric_node);
inline constexpr double least_small_node = 46;  ///< pixels
inline constexpr double small_node_units = 2.2;

/// Of the rank's GPU, its link to the others of its node, and its NIC.
double speed_of(const WhatIf& what_if, std::uint64_t rank);
double gpu_link_factor(const WhatIf& what_if, std::uint64_t rank);
double nic_factor(const WhatIf& what_if, std::uint64_t rank, std::uint64_t node);
/// The slowest of a node's NICs, and of all in it.
double node_nic_factor(const Topology& topology, std::uint64_t node);
double node_factor(const Topology& topology, std::uint64_t node);
/// Where in the fabric the job's nodes with something slow are, each once.
std::vector<std::uint64_t> slow_fabric_nodes(const Topology& topology);

}  // namespace zeroplan::gui
