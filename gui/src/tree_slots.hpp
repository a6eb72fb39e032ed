#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/fabric_spec.hpp"

namespace zeroplan::gui {

/// One place in the row of nodes below a fabric's switches: a node, or what stands for nodes, leaves or pods
/// that are not drawn.
struct TreeSlot {
    enum class Kind : std::uint8_t { node, more_nodes, more_leaves, more_pods } kind = Kind::node;
    std::uint64_t node = 0;   ///< the first one that it stands for
    std::uint64_t count = 1;  ///< nodes, leaves or pods
    std::uint64_t leaf = 0, pod = 0;
    friend bool operator==(const TreeSlot&, const TreeSlot&) = default;
};

/// At most `most` of them, and then as many as stay clear: two pods of a few leaves of a few nodes each.
std::vector<TreeSlot> tree_slots(const FabricSpec& fabric, std::uint64_t nodes, std::uint64_t most);

}  // namespace zeroplan::gui
