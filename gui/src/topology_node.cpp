#include <algorithm>
#include <cmath>

#include "topology_sketch.hpp"
#include "zeroplan/gui/text.hpp"

// One node whole, from the top: its NICs, the host that PCIe joins them to, its GPUs, what joins these.
namespace zeroplan::gui {

namespace {

constexpr double least_gpu = 44, least_nic = 30, widest_gpu = 132, side = 16;                        // pixels
constexpr double padding = 0.6, nic = 1.3, below_nic = 0.6, host = 1.5, above_gpu = 0.8, gpu = 2.7;  // units
constexpr double above_bus = 0.5, bus = 1.1, title = 1.5;

bool has_network(const Topology& topology) {
    return nodes_in_use(topology.cluster) > 1;
}

// Processes of this machine have its memory in common, cards on PCIe alone the host: nothing else joins them.
bool has_bus(const Topology& topology) {
    return find_class(topology.links, LinkKind::gpu) != nullptr && !topology.cluster.gpu.is_host;
}

bool has_bridges(const Topology& topology) {
    return find_class(topology.links, LinkKind::bridge) != nullptr;
}

// Of a machine's many possible processes only those that there are.
std::uint64_t shown_gpus(const ClusterSpec& cluster) {
    return cluster.gpu.is_host ? std::min(cluster.gpus_used, cluster.gpus_per_node) : cluster.gpus_per_node;
}

struct Grid {
    std::uint64_t gpus = 1, columns = 1, rows = 1;
    double cell = 0;  // pixels

    Grid(const Topology& topology, double width) : gpus(shown_gpus(topology.cluster)) {
        const double room = width - 2 * side;
        const auto fit = static_cast<std::uint64_t>(std::max(1.0, room / least_gpu));
        rows = (gpus + fit - 1) / fit;
        // Full rows where one or two more make them so; an even number a row keeps bridged pairs together.
        for (std::uint64_t more = 0; rows > 1 && more <= 2; ++more)
            if (gpus % (rows + more) == 0 && gpus / (rows + more) % 2 == 0) {
                rows += more;
                break;
            }
        columns = (gpus + rows - 1) / rows;
        if (rows > 1 && columns % 2 == 1) ++columns;
        rows = (gpus + columns - 1) / columns;
        cell = std::min(widest_gpu, room / static_cast<double>(columns));
    }
};

// Pairs can be shown where all GPUs stand in one row; else a bar stands for all of them.
bool has_mesh(const Topology& topology, std::uint64_t rows) {
    return !topology.mesh.empty() && rows == 1 && has_bus(topology);
}

double row_units(const Topology& topology, std::uint64_t rows) {
    if (has_mesh(topology, rows)) return above_gpu + gpu + mesh_units(topology);
    return above_gpu + gpu + (has_bus(topology) || has_bridges(topology) ? above_bus + bus : 0);
}

QString bus_name(const Topology& topology) {
    switch (topology.cluster.intra_node) {
        case IntraNode::nvswitch:
            return QObject::tr("NVSwitch");
        case IntraNode::nvlink_mesh:
            return topology.mesh.empty()
                       ? QObject::tr("NVLink mesh; pairs are drawn of built-in machines alone")
                       : QObject::tr("NVLink mesh");
        case IntraNode::xgmi:
            return QObject::tr("xGMI, every pair");
        case IntraNode::nvlink_pairs:
        case IntraNode::pcie:
        case IntraNode::shared_memory:
            break;
    }
    return text(to_string(topology.cluster.intra_node));
}

QString host_words(const ClusterSpec& cluster) {
    return QObject::tr("host: %1 memory, %2 cores")
        .arg(text(format_gib(cluster.host.memory)), text(format_count(cluster.host.cores)));
}

QString node_words(const Sketch& sketch) {
    const ClusterSpec& cluster = sketch.topology.cluster;
    const QString gpus = cluster.gpu.is_host ? QObject::tr("processes") : text(cluster.gpu.name);
    const QString all = QObject::tr("%1 × %2").arg(shown_gpus(cluster)).arg(gpus);
    return has_network(sketch.topology) ? QObject::tr("node %1: %2").arg(sketch.node).arg(all) : all;
}

class NodePart {
public:
    NodePart(const Sketch& sketch, double top)
        : sketch_(sketch),
          grid_(sketch.topology, sketch.width()),
          left_(sketch.left + (sketch.width() - grid_.cell * static_cast<double>(grid_.columns)) / 2),
          top_(top),
          units_(node_units(sketch.topology, sketch.width())) {}

    QRectF draw() {
        const double inner = grid_.cell * static_cast<double>(grid_.columns) + 2 * side;
        const QRectF frame(left_ - side, top_, inner, units_ * unit());
        DrawnBox& whole = sketch_.box(BoxRole::frame, frame, node_words(sketch_));
        whole.node = sketch_.node;
        const double first_row = draw_host();
        for (std::uint64_t row = 0; row < grid_.rows; ++row)
            draw_row(row,
                     first_row + static_cast<double>(row) * row_units(sketch_.topology, grid_.rows) * unit());
        return frame;
    }

private:
    double unit() const { return sketch_.unit; }
    bool in_use(std::uint64_t index) const { return rank(index) < sketch_.topology.cluster.gpus_used; }
    std::uint64_t rank(std::uint64_t index) const {
        return sketch_.node * sketch_.topology.cluster.gpus_per_node + index;
    }
    double x(std::uint64_t column) const { return left_ + grid_.cell * (static_cast<double>(column) + 0.5); }
    /// From the host to the GPUs: PCIe, or of processes their memory.
    LinkKind host_link() const {
        return sketch_.topology.cluster.gpu.is_host ? LinkKind::gpu : LinkKind::pcie;
    }

    // Where the first row of GPUs begins, the gap above it included.
    double draw_host() {
        double y = top_ + padding * unit();
        const double label_top = y;
        if (has_network(sketch_.topology)) {
            draw_nics(y);
            y += (nic + below_nic) * unit();
        }
        const QRectF bar(left_, y, grid_.cell * static_cast<double>(grid_.columns), host * unit());
        sketch_.box(BoxRole::host, bar, host_words(sketch_.topology.cluster));
        sketch_.label(host_link(), label_top, bar.bottom() + above_gpu * unit());
        return bar.bottom();
    }

    // As many as the cluster states, where there is room for them; else one a GPU, of a node of several rows
    // one above each column, for all below it.
    void draw_nics(double y) {
        const std::uint64_t stated = sketch_.topology.cluster.inter_node.nics_per_node;
        const double inner = grid_.cell * static_cast<double>(grid_.columns);
        const bool fits = stated > 0 && static_cast<double>(stated) * least_nic <= inner;
        const std::uint64_t drawn = fits ? stated : grid_.columns;
        const double cell = inner / static_cast<double>(drawn);
        for (std::uint64_t i = 0; i < drawn; ++i) {
            const double middle = left_ + cell * (static_cast<double>(i) + 0.5);
            const QString words = grid_.rows > 1 && !fits ? QObject::tr("NICs") : QObject::tr("NIC");
            const std::uint64_t first = fits ? i * grid_.gpus / stated : i;
            const std::uint64_t end = fits ? (i + 1) * grid_.gpus / stated : i + 1;
            draw_nic(words, {middle, y}, cell, first, end);
        }
    }

    // The NIC of the GPUs from `first` to before `end`, and of the first of them at least. Nobody says which
    // GPU is near which NIC: they are shared out in order.
    void draw_nic(const QString& words, QPointF top, double cell, std::uint64_t first, std::uint64_t end) {
        const double width = std::min(cell - std::min(8.0, cell / 6), 64.0);
        const QRectF rect(top.x() - width / 2, top.y(), width, nic * unit());
        DrawnBox& box = sketch_.box(BoxRole::nic, rect, words);
        box.link = LinkKind::nic;
        box.rank = rank(first);
        box.factor = nic_factor(sketch_.topology.what_if, rank(first), sketch_.node);
        for (std::uint64_t i = first + 1; i < end; ++i)
            box.factor = std::min(box.factor, nic_factor(sketch_.topology.what_if, rank(i), sketch_.node));
        sketch_.link(LinkKind::nic, {top.x(), top_}, top, box.factor);
        sketch_.link(LinkKind::pcie, {top.x(), rect.bottom()}, {top.x(), rect.bottom() + below_nic * unit()});
    }

    void draw_row(std::uint64_t row, double top) {
        const double y = top + above_gpu * unit(), bottom = y + gpu * unit();
        const std::uint64_t first = row * grid_.columns, end = std::min(grid_.gpus, first + grid_.columns);
        const double feed = row == 0 ? top : top + above_gpu * unit() * 0.4;
        for (std::uint64_t i = first; i < end; ++i) {
            // Without another link to its neighbours this is the one that gpu:RANK names.
            sketch_.link(host_link(), {x(i - first), feed}, {x(i - first), y},
                         has_bus(sketch_.topology) ? 1 : gpu_link_factor(sketch_.topology.what_if, rank(i)));
            if (has_bus(sketch_.topology) && !has_mesh(sketch_.topology, grid_.rows))
                sketch_.link(LinkKind::gpu, {x(i - first), bottom},
                             {x(i - first), bottom + above_bus * unit()},
                             gpu_link_factor(sketch_.topology.what_if, rank(i)));
        }
        if (row > 0) draw_trunk(feed, x(0));
        draw_tensor_groups(first, end, y);
        for (std::uint64_t i = first; i < end; ++i) draw_gpu(i, {x(i - first), y});
        if (row == 0) {
            const double label_end = top + row_units(sketch_.topology, grid_.rows) * unit();
            if (has_bus(sketch_.topology)) sketch_.label(LinkKind::gpu, y, label_end);
            if (has_bridges(sketch_.topology)) sketch_.label(LinkKind::bridge, y, label_end);
        }
        if (has_mesh(sketch_.topology, grid_.rows))
            draw_mesh(sketch_, left_, bottom, grid_.cell);
        else if (has_bus(sketch_.topology))
            draw_bus(row, bottom + above_bus * unit());
        if (has_bridges(sketch_.topology)) draw_bridges(first, end, bottom + above_bus * unit());
    }

    // PCIe of the rows further down, past the right of those above.
    void draw_trunk(double y, double from) {
        const double right = left_ + grid_.cell * static_cast<double>(grid_.columns) + side / 2;
        const double source = sketch_.drawing.boxes.empty() ? y : host_middle();
        sketch_.link(host_link(), {from, y}, {right, y});
        sketch_.link(host_link(), {right, y}, {right, source});
        sketch_.link(host_link(), {right, source}, {right - side / 2, source});
    }

    double host_middle() const {
        for (const DrawnBox& box : sketch_.drawing.boxes)
            if (box.role == BoxRole::host) return box.rect.center().y();
        return top_;
    }

    void draw_gpu(std::uint64_t index, QPointF top) {
        const QRectF rect(top.x() - grid_.cell / 2 + 3, top.y(), grid_.cell - 6, gpu * unit());
        if (!in_use(index)) {
            sketch_.box(BoxRole::idle_gpu, rect, QObject::tr("unused"));
            return;
        }
        DrawnBox& box = sketch_.box(BoxRole::gpu, rect, text(format_count(rank(index))));
        box.details = position_words(sketch_.topology.degrees, rank(index));
        box.rank = rank(index);
        box.colour = colour_of(sketch_.topology.degrees, rank(index));
        box.factor = speed_of(sketch_.topology.what_if, rank(index));
    }

    void draw_tensor_groups(std::uint64_t first, std::uint64_t end, double y) {
        const Degrees& degrees = sketch_.topology.degrees;
        if (degrees.tensor == 1) return;
        const auto group = [&](std::uint64_t i) { return rank_position(degrees, rank(i)).tensor_group; };
        for (std::uint64_t i = first; i < end && in_use(i);) {
            std::uint64_t last = i;
            while (last + 1 < end && in_use(last + 1) && group(last + 1) == group(i)) ++last;
            const double x_end = x(last - first) + grid_.cell / 2, x_begin = x(i - first) - grid_.cell / 2;
            sketch_
                .box(BoxRole::tensor_group, QRectF(x_begin + 1, y - 3, x_end - x_begin - 2, gpu * unit() + 6))
                .rank = rank(i);
            i = last + 1;
        }
    }

    // All rows' parts are one, joined at the left.
    void draw_bus(std::uint64_t row, double y) {
        const double begin = grid_.rows > 1 ? left_ - side + 4 : left_;
        const QRectF rect(begin, y, left_ + grid_.cell * static_cast<double>(grid_.columns) - begin,
                          bus * unit());
        sketch_.box(BoxRole::bus, rect, row == 0 ? bus_name(sketch_.topology) : QString()).link =
            LinkKind::gpu;
        if (row == 0) return;
        const double above = y - row_units(sketch_.topology, grid_.rows) * unit() + bus * unit();
        sketch_.link(LinkKind::gpu, {begin + 2, above}, {begin + 2, y});
    }

    // The cards 2i and 2i + 1, as core's group_placement() joins them.
    void draw_bridges(std::uint64_t first, std::uint64_t end, double y) {
        for (std::uint64_t i = first; i + 1 < end; i += 2) {
            const double from = x(i - first), to = x(i + 1 - first);
            const double factor = std::min(gpu_link_factor(sketch_.topology.what_if, rank(i)),
                                           gpu_link_factor(sketch_.topology.what_if, rank(i + 1)));
            for (const double at : {from, to})
                sketch_.link(LinkKind::bridge, {at, y - above_bus * unit()}, {at, y}, factor);
            DrawnBox& bridge = sketch_.box(BoxRole::bus, QRectF(from - 8, y, to - from + 16, bus * unit()),
                                           QObject::tr("bridge"));
            bridge.link = LinkKind::bridge;
            bridge.factor = factor;
        }
    }

    const Sketch& sketch_;
    Grid grid_;
    double left_, top_, units_;
};

}  // namespace

double node_units(const Topology& topology, double width) {
    const Grid grid(topology, width);
    return padding + (has_network(topology) ? nic + below_nic : 0) + host +
           static_cast<double>(grid.rows) * row_units(topology, grid.rows) + title;
}

QRectF draw_node(const Sketch& sketch, double top) {
    return NodePart(sketch, top).draw();
}

}  // namespace zeroplan::gui
