#include <algorithm>

#include "topology_sketch.hpp"
#include "tree_slots.hpp"
#include "zeroplan/collective_cost.hpp"
#include "zeroplan/gui/text.hpp"

// The switches above the nodes, from the top: core or spine, pods, leaves; then the nodes in small.
namespace zeroplan::gui {

namespace {

constexpr double switch_height = 1.5, uplinks = 2.7, nic_links = 2.9;  // units
constexpr double group_gap = 8, widest_slot = 116, more_weight = 1.7;  // pixels, slots
constexpr double least_rail = 24, narrowest_small_node = 38;
constexpr std::uint64_t most_slots = 64;

std::uint64_t fabric_nodes(const Topology& topology) {
    return std::max(topology.sites.nodes, nodes_in_use(topology.cluster));
}

double weight_of(const TreeSlot& slot) {
    return slot.kind == TreeSlot::Kind::node ? 1 : more_weight;
}

// Pixels of a row whose nodes have so many each.
double row_width(const std::vector<TreeSlot>& slots, double node) {
    double width = 0;
    for (std::size_t i = 0; i < slots.size(); ++i)
        width += node * weight_of(slots[i]) + (i > 0 && slots[i].leaf != slots[i - 1].leaf ? group_gap : 0);
    return width;
}

std::vector<TreeSlot> slots_of(const Topology& topology, double width) {
    const FabricSpec fabric = fabric_of(topology.what_if);
    const std::uint64_t nodes = fabric_nodes(topology);
    if (nodes <= most_slots)
        if (auto all = tree_slots(fabric, nodes, nodes); row_width(all, narrowest_small_node) <= width)
            return all;
    // What stands for many takes more room than a node.
    for (std::uint64_t most = most_slots; most > 2; --most)
        if (auto slots = tree_slots(fabric, nodes, most); row_width(slots, least_small_node) <= width)
            return slots;
    return tree_slots(fabric, nodes, 2);
}

// Rows of switches above each other.
struct Levels {
    bool leaves = true, pods = false, top = false;
    explicit Levels(const Topology& topology) {
        const FabricSpec fabric = fabric_of(topology.what_if);
        const std::uint64_t nodes = fabric_nodes(topology);
        leaves = fabric.kind != FabricKind::single_switch;
        pods = leaves && fabric.leaves_per_pod > 0;
        const std::uint64_t below = fabric.nodes_per_leaf * (pods ? fabric.leaves_per_pod : 1);
        top = !leaves || nodes > below;
    }
    double units() const {
        return (leaves ? switch_height : 0) + (pods ? switch_height + uplinks : 0) +
               (top ? switch_height + (leaves ? uplinks : 0) : 0) + nic_links + small_node_units;
    }
};

QString more_words(TreeSlot::Kind kind, bool rails) {
    switch (kind) {
        case TreeSlot::Kind::more_leaves:
            return rails ? QObject::tr("more groups") : QObject::tr("more leaves");
        case TreeSlot::Kind::more_pods:
            return QObject::tr("more pods");
        case TreeSlot::Kind::node:
        case TreeSlot::Kind::more_nodes:
            break;
    }
    return QObject::tr("more nodes");
}

class FabricPart {
public:
    FabricPart(const Sketch& sketch, double top)
        : sketch_(sketch),
          levels_(sketch.topology),
          rails_(fabric_of(sketch.topology.what_if).kind == FabricKind::rail_optimised),
          slots_(slots_of(sketch.topology, sketch.width())),
          top_(top) {
        place_slots();
    }

    QRectF draw() {
        double y = top_;
        if (levels_.top) {
            top_bar_ = {rects_.front().left(), y, rects_.back().right() - rects_.front().left(),
                        switch_height * unit()};
            sketch_.box(BoxRole::fabric_switch, top_bar_, top_words()).link = top_link();
            y = top_bar_.bottom() + (levels_.leaves ? uplinks : 0) * unit();
            if (levels_.leaves) sketch_.label(top_link(), top_bar_.bottom(), y);
        }
        if (levels_.pods) y = draw_pods(y);
        const double leaf_top = y;
        const double nics = leaf_top + (levels_.leaves ? switch_height : 0) * unit();
        const double nodes = nics + nic_links * unit();
        sketch_.label(LinkKind::nic, nics, nodes);
        if (levels_.leaves) draw_leaves(leaf_top);
        return draw_nodes(nodes);
    }

private:
    double unit() const { return sketch_.unit; }
    LinkKind top_link() const {
        if (!levels_.leaves) return LinkKind::nic;
        return levels_.pods ? LinkKind::pod : LinkKind::leaf;
    }
    QString top_words() const {
        if (!levels_.leaves) return QObject::tr("one switch that doesn't block");
        return levels_.pods ? QObject::tr("core switches") : QObject::tr("spine switches");
    }

    // Slots of one leaf stand closer together than those of two; what stands for many is wider.
    void place_slots() {
        double weights = 0, gaps = 0;
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            weights += weight_of(slots_[i]);
            if (i > 0 && slots_[i].leaf != slots_[i - 1].leaf) gaps += group_gap;
        }
        const double one = std::min(widest_slot, (sketch_.width() - gaps) / weights);
        double x = sketch_.left + (sketch_.width() - gaps - one * weights) / 2;
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            if (i > 0 && slots_[i].leaf != slots_[i - 1].leaf) x += group_gap;
            rects_.push_back({x + 2, 0, one * weight_of(slots_[i]) - 4, small_node_units * unit()});
            x += one * weight_of(slots_[i]);
        }
    }

    static bool has_leaf(const TreeSlot& slot) {
        return slot.kind == TreeSlot::Kind::node || slot.kind == TreeSlot::Kind::more_nodes;
    }

    // From the first to the last slot of which `same` holds.
    template <class Same>
    QRectF span(double y, const Same& same) const {
        QRectF whole;
        for (std::size_t i = 0; i < slots_.size(); ++i)
            if (same(slots_[i])) whole |= rects_[i].translated(0, y - rects_[i].top());
        whole.setHeight(switch_height * unit());
        return whole;
    }

    double draw_pods(double y) {
        const double bottom = y + switch_height * unit();
        for (std::uint64_t pod = 0; pod <= slots_.back().pod; ++pod) {
            const auto inside = [&](const TreeSlot& s) {
                return s.pod == pod && s.kind != TreeSlot::Kind::more_pods;
            };
            if (std::none_of(slots_.begin(), slots_.end(), inside)) continue;
            const QRectF rect = span(y, inside);
            sketch_.box(BoxRole::fabric_switch, rect, QObject::tr("pod %1").arg(pod)).link = LinkKind::leaf;
            if (levels_.top)
                sketch_.link(LinkKind::pod, {rect.center().x(), y}, {rect.center().x(), top_bar_.bottom()});
        }
        sketch_.label(LinkKind::leaf, bottom, bottom + uplinks * unit());
        return bottom + uplinks * unit();
    }

    void draw_leaves(double y) {
        leaf_bottom_ = y + switch_height * unit();
        const double above = levels_.pods ? y - uplinks * unit() : top_bar_.bottom();
        const bool linked = levels_.pods || levels_.top;
        std::optional<std::uint64_t> last;
        for (const TreeSlot& slot : slots_) {
            if (!has_leaf(slot) || slot.leaf == last) continue;
            last = slot.leaf;
            const QRectF rect =
                span(y, [&](const TreeSlot& s) { return s.leaf == slot.leaf && has_leaf(s); });
            const std::vector<QRectF> switches = rails_ ? rail_rects(rect) : std::vector<QRectF>{rect};
            for (std::size_t i = 0; i < switches.size(); ++i) {
                sketch_.box(BoxRole::fabric_switch, switches[i], switch_words(slot.leaf, i, switches.size()))
                    .link = LinkKind::nic;
                if (linked)
                    sketch_.link(LinkKind::leaf, {switches[i].center().x(), y},
                                 {switches[i].center().x(), above});
            }
            leaf_switches_[slot.leaf] = switches;
        }
    }

    // A leaf switch for each NIC of a node; the last one drawn stands for those there is no room for.
    std::vector<QRectF> rail_rects(const QRectF& group) const {
        const auto nics = nics_in_use(sketch_.topology.cluster);
        const auto shown =
            std::clamp<std::uint64_t>(static_cast<std::uint64_t>(group.width() / least_rail), 1, nics);
        std::vector<QRectF> rects;
        const double width = group.width() / static_cast<double>(shown);
        for (std::uint64_t i = 0; i < shown; ++i)
            rects.push_back(
                {group.left() + width * static_cast<double>(i) + 1, group.top(), width - 2, group.height()});
        return rects;
    }

    QString switch_words(std::uint64_t leaf, std::size_t index, std::size_t shown) const {
        if (!rails_) return QObject::tr("leaf %1").arg(leaf);
        const auto nics = nics_in_use(sketch_.topology.cluster);
        if (shown == nics || index + 1 < shown) return QString("r%1").arg(index);
        return index == 0 ? QObject::tr("%1 rails").arg(nics) : QString("…");
    }

    QRectF draw_nodes(double y) {
        QRectF own, folded;
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            const TreeSlot& slot = slots_[i];
            const QRectF rect = rects_[i].translated(0, y);
            draw_links_up(slot, rect);
            if (slot.kind == TreeSlot::Kind::node) {
                if (draw_small_node(sketch_, rect, slot.node)) own = rect;
                continue;
            }
            DrawnBox& more =
                sketch_.box(BoxRole::more, rect, QObject::tr("× %1").arg(text(format_count(slot.count))));
            more.details = {more_words(slot.kind, rails_)};
            more.slow = slow_nodes_in(i);
            if (folded.isNull() || slot.node <= sketch_node()) folded = rect;
        }
        return own.isNull() ? folded : own;
    }

    // A slot stands for the nodes up to the next one's.
    std::uint64_t slow_nodes_in(std::size_t slot) const {
        const std::uint64_t first = slots_[slot].node;
        const std::uint64_t end =
            slot + 1 < slots_.size() ? slots_[slot + 1].node : fabric_nodes(sketch_.topology);
        const std::vector<std::uint64_t> slow = slow_fabric_nodes(sketch_.topology);
        return static_cast<std::uint64_t>(std::count_if(
            slow.begin(), slow.end(), [&](std::uint64_t node) { return node >= first && node < end; }));
    }

    // Where in the fabric the node that is drawn whole is.
    std::uint64_t sketch_node() const {
        const auto& job = sketch_.topology.sites.job;
        return sketch_.node < job.size() ? job[sketch_.node] : sketch_.node;
    }

    void draw_links_up(const TreeSlot& slot, const QRectF& rect) {
        const QPointF from(rect.center().x(), rect.top());
        if (!levels_.leaves)
            return sketch_.link(LinkKind::nic, from, {from.x(), top_bar_.bottom()}, factor(slot));
        if (slot.kind == TreeSlot::Kind::more_pods)
            return sketch_.link(LinkKind::pod, from, {from.x(), top_bar_.bottom()});
        if (!has_leaf(slot)) {
            const double above =
                leaf_bottom_ - switch_height * unit() - (levels_.pods || levels_.top ? uplinks * unit() : 0);
            return sketch_.link(LinkKind::leaf, from, {from.x(), above});
        }
        const auto& switches = leaf_switches_.at(slot.leaf);
        if (!rails_) return sketch_.link(LinkKind::nic, from, {from.x(), leaf_bottom_}, factor(slot));
        const double step = rect.width() / static_cast<double>(switches.size() + 1);
        for (std::size_t i = 0; i < switches.size(); ++i)
            sketch_.link(LinkKind::nic, {rect.left() + step * static_cast<double>(i + 1), rect.top()},
                         {switches[i].center().x(), leaf_bottom_}, factor(slot));
    }

    double factor(const TreeSlot& slot) const {
        if (slot.kind != TreeSlot::Kind::node) return 1;
        const auto& job = sketch_.topology.sites.job;
        const auto place = std::find(job.begin(), job.end(), slot.node);
        if (sketch_.topology.sites.nodes > 0 && place == job.end()) return 1;
        return node_nic_factor(sketch_.topology, sketch_.topology.sites.nodes == 0
                                                     ? slot.node
                                                     : static_cast<std::uint64_t>(place - job.begin()));
    }

    const Sketch& sketch_;
    Levels levels_;
    bool rails_;
    std::vector<TreeSlot> slots_;
    std::vector<QRectF> rects_;
    double top_, leaf_bottom_ = 0;
    QRectF top_bar_;
    std::map<std::uint64_t, std::vector<QRectF>> leaf_switches_;
};

}  // namespace

double fabric_units(const Topology& topology, double width) {
    if (fabric_of(topology.what_if).kind == FabricKind::torus) return torus_units(topology, width);
    return Levels(topology).units();
}

QRectF draw_fabric(const Sketch& sketch, double top) {
    if (fabric_of(sketch.topology.what_if).kind == FabricKind::torus) return draw_torus(sketch, top);
    return FabricPart(sketch, top).draw();
}

}  // namespace zeroplan::gui
