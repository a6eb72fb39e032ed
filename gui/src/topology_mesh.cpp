#include <algorithm>
#include <vector>

#include "topology_sketch.hpp"

// A mesh of NVLinks below a row of GPUs: of each pair a line down, across and up again, one for each link.
namespace zeroplan::gui {

namespace {

constexpr double above_first = 0.5, pitch = 0.5;  // units
constexpr double between_links = 4;               // pixels, of one pair

struct Wire {
    MeshLinks pair;
    double from = 0, to = 0;  ///< in GPUs' widths from the left
    std::size_t track = 0;    ///< 0 is next to the GPUs
};

/// Where a pair's links leave a GPU, in GPUs' widths: those to the left first, then those to the right, and
/// the nearest neighbour outermost, so that short lines stay inside of long ones.
double port(const std::vector<MeshLinks>& mesh, std::uint64_t gpu, std::uint64_t other) {
    std::vector<std::uint64_t> others;
    for (const MeshLinks& pair : mesh) {
        if (pair.a == gpu) others.push_back(pair.b);
        if (pair.b == gpu) others.push_back(pair.a);
    }
    std::sort(others.begin(), others.end(), [&](std::uint64_t one, std::uint64_t two) {
        return (one < gpu) != (two < gpu) ? one < gpu : one > two;
    });
    const auto place = std::find(others.begin(), others.end(), other) - others.begin();
    return static_cast<double>(gpu) +
           (static_cast<double>(place) + 1) / (static_cast<double>(others.size()) + 1);
}

/// Shorter ones nearer to the GPUs, each on the first track that is free all along it.
std::vector<Wire> wires(const std::vector<MeshLinks>& mesh) {
    std::vector<Wire> placed;
    for (const MeshLinks& pair : mesh)
        placed.push_back({pair, port(mesh, pair.a, pair.b), port(mesh, pair.b, pair.a), 0});
    std::stable_sort(placed.begin(), placed.end(),
                     [](const Wire& a, const Wire& b) { return a.to - a.from < b.to - b.from; });
    for (std::size_t i = 0; i < placed.size(); ++i) {
        Wire& wire = placed[i];
        const auto taken = [&](const Wire& other) {
            return other.track == wire.track && other.from <= wire.to && other.to >= wire.from;
        };
        while (std::any_of(placed.begin(), placed.begin() + static_cast<std::ptrdiff_t>(i), taken))
            ++wire.track;
    }
    return placed;
}

}  // namespace

double mesh_units(const Topology& topology) {
    std::size_t last = 0;
    for (const Wire& wire : wires(topology.mesh)) last = std::max(last, wire.track);
    return above_first + pitch * static_cast<double>(last + 1);
}

void draw_mesh(const Sketch& sketch, double left, double y, double cell) {
    const std::uint64_t first = sketch.node * sketch.topology.cluster.gpus_per_node;
    for (const Wire& wire : wires(sketch.topology.mesh)) {
        const double factor = std::min(gpu_link_factor(sketch.topology.what_if, first + wire.pair.a),
                                       gpu_link_factor(sketch.topology.what_if, first + wire.pair.b));
        const double middle = y + (above_first + pitch * static_cast<double>(wire.track)) * sketch.unit;
        for (std::uint64_t i = 0; i < wire.pair.links; ++i) {
            const double beside =
                (static_cast<double>(i) - static_cast<double>(wire.pair.links - 1) / 2) * between_links;
            const double from = left + wire.from * cell + beside, to = left + wire.to * cell - beside;
            const double across = middle - beside;
            sketch.link(LinkKind::gpu, {from, y}, {from, across}, factor);
            sketch.link(LinkKind::gpu, {from, across}, {to, across}, factor);
            sketch.link(LinkKind::gpu, {to, across}, {to, y}, factor);
        }
    }
}

}  // namespace zeroplan::gui
