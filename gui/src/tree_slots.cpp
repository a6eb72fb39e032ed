#include "tree_slots.hpp"

#include <algorithm>

namespace zeroplan::gui {

namespace {

// What of each is shown.
struct Shown {
    std::uint64_t pods = 1, leaves = 1, nodes = 1;
};

class Tree {
public:
    Tree(const FabricSpec& fabric, std::uint64_t nodes)
        : nodes_(nodes),
          per_leaf_(fabric.kind == FabricKind::single_switch ? nodes : fabric.nodes_per_leaf),
          leaves_((nodes + per_leaf_ - 1) / per_leaf_),
          per_pod_(fabric.leaves_per_pod > 0 ? fabric.leaves_per_pod : leaves_),
          pods_((leaves_ + per_pod_ - 1) / per_pod_) {}

    Shown everything() const { return {pods_, per_pod_, per_leaf_}; }
    std::uint64_t pods() const { return pods_; }

    std::vector<TreeSlot> slots(const Shown& shown) const {
        std::vector<TreeSlot> all;
        for (std::uint64_t pod = 0; pod < std::min(shown.pods, pods_); ++pod) add_pod(all, pod, shown);
        if (pods_ > shown.pods)
            all.push_back({TreeSlot::Kind::more_pods, shown.pods * per_pod_ * per_leaf_, pods_ - shown.pods,
                           shown.pods * per_pod_, shown.pods});
        return all;
    }

private:
    void add_pod(std::vector<TreeSlot>& all, std::uint64_t pod, const Shown& shown) const {
        const std::uint64_t first = pod * per_pod_, leaves = std::min(per_pod_, leaves_ - first);
        const std::uint64_t drawn = std::min(shown.leaves, leaves);
        for (std::uint64_t leaf = first; leaf < first + drawn; ++leaf) add_leaf(all, leaf, pod, shown);
        if (leaves > drawn)
            all.push_back({TreeSlot::Kind::more_leaves, (first + drawn) * per_leaf_, leaves - drawn,
                           first + drawn, pod});
    }

    void add_leaf(std::vector<TreeSlot>& all, std::uint64_t leaf, std::uint64_t pod,
                  const Shown& shown) const {
        const std::uint64_t first = leaf * per_leaf_, nodes = std::min(per_leaf_, nodes_ - first);
        const std::uint64_t drawn = std::min(shown.nodes, nodes);
        for (std::uint64_t node = first; node < first + drawn; ++node)
            all.push_back({TreeSlot::Kind::node, node, 1, leaf, pod});
        if (nodes > drawn)
            all.push_back({TreeSlot::Kind::more_nodes, first + drawn, nodes - drawn, leaf, pod});
    }

    std::uint64_t nodes_, per_leaf_, leaves_, per_pod_, pods_;
};

}  // namespace

std::vector<TreeSlot> tree_slots(const FabricSpec& fabric, std::uint64_t nodes, std::uint64_t most) {
    const Tree tree(fabric, nodes);
    if (nodes <= most) return tree.slots(tree.everything());
    for (std::uint64_t pods = std::min<std::uint64_t>(2, tree.pods()); pods > 0; --pods)
        for (std::uint64_t leaves = std::min<std::uint64_t>(4, tree.everything().leaves); leaves > 0;
             --leaves)
            for (std::uint64_t drawn = std::min(tree.everything().nodes, most); drawn > 0; --drawn) {
                // One node a leaf says little if it has more.
                if (drawn == 1 && tree.everything().nodes > 1 && (pods > 1 || leaves > 1)) break;
                auto slots = tree.slots({pods, leaves, drawn});
                if (slots.size() <= most) return slots;
            }
    return tree.slots({1, 1, 1});
}

}  // namespace zeroplan::gui
