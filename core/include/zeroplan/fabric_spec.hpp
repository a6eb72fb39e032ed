#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace zeroplan {

enum class FabricKind : std::uint8_t {
    single_switch,   ///< non-blocking
    rail_optimised,  ///< a leaf switch for each NIC of the nodes below it; spine switches join them
    fat_tree,        ///< leaf switches for all NICs of their nodes, with or without pods above
    torus            ///< no switches: a node's NICs are wired to its neighbours
};
inline constexpr std::array<std::string_view, 4> fabric_kind_words{"single_switch", "rail_optimised",
                                                                   "fat_tree", "torus"};  ///< by FabricKind
constexpr std::string_view to_string(FabricKind kind) {
    return fabric_kind_words[static_cast<std::size_t>(kind)];
}

/// What joins the NICs of nodes. What leaves a switch upwards has the bandwidth of what is below it /
/// oversubscription.
struct FabricSpec {
    FabricKind kind = FabricKind::single_switch;
    std::uint64_t nodes_per_leaf = 1;  ///< of trees; on rails: that have their leaf switches in common
    double leaf_oversubscription = 1;
    std::uint64_t leaves_per_pod = 0;  ///< of a fat tree; 0: it has two levels
    double pod_oversubscription = 1;
    std::vector<std::uint64_t> dimensions;  ///< of a torus, nodes in each; the first one's vary fastest
    double link_bytes_per_s = 0;  ///< of a torus, per direction; 0: a node's NICs shared out to its links
    friend bool operator==(const FabricSpec&, const FabricSpec&) = default;
};

/// Whether any link of it can hold anything back that NICs send.
constexpr bool blocks(const FabricSpec& fabric) {
    switch (fabric.kind) {
        case FabricKind::single_switch:
            return false;
        case FabricKind::torus:
            return true;
        case FabricKind::rail_optimised:
        case FabricKind::fat_tree:
            break;
    }
    return fabric.leaf_oversubscription > 1 || (fabric.leaves_per_pod > 0 && fabric.pod_oversubscription > 1);
}

}  // namespace zeroplan
