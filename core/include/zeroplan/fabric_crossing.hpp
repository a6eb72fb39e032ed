#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/collective_cost.hpp"
#include "zeroplan/fabric_routes.hpp"

namespace zeroplan {

/// A node of the fabric and those of its NICs that a communicator's ranks use.
struct GroupNode {
    std::uint64_t node = 0;
    std::vector<std::uint64_t> rails;
    friend auto operator<=>(const GroupNode&, const GroupNode&) = default;
};

/// Where a communicator's ranks are, in their order.
struct CommunicatorSite {
    std::vector<GroupNode> nodes;
    std::uint64_t ranks = 0;
    friend auto operator<=>(const CommunicatorSite&, const CommunicatorSite&) = default;
};
/// The site without what makes no difference on a fabric: which NICs its ranks use, where all are alike.
CommunicatorSite as_seen_by(const FabricRoutes& routes, CommunicatorSite site);

/// Which nodes of a communicator send to which.
enum class CrossingPattern : std::uint8_t {
    ring,
    trees,
    pairs,
    powers_of_two,
    star_all_reduce,  ///< switches reduce what comes from below, and hand the result down again
    star_all_gather,
    star_reduce_scatter
};
CrossingPattern crossing_pattern(CollectiveAlgorithm algorithm, CollectiveKind kind);

/// What a collective of the pattern, each of whose NICs sends one unit, sends over the links of a fabric.
///
/// A ring passes each edge between neighbouring nodes on every rail; NCCL joins nodes in the order of ranks
/// (graph/rings.cc, connect.cc), and NICs of the same rail. Trees are NCCL's double binary tree
/// (graph/trees.cc: ncclGetDtree), each of whose edges is passed up and down with half of the buffer. An
/// all-to-all goes from each rank to each, on the rail of the receiver where GPUs relay (PXN).
/// PAT sends over distances of 1, 2, 4, … nodes, the farther the fewer chunks (collectives.h:
/// PatAGAlgorithm). Where switches reduce, as many NICs as are below one send no more up from it than one of
/// them, for each rail (NVIDIA SHARP's aggregation tree); what is gathered comes down once for all below.
Crossing fabric_crossing(CrossingPattern pattern, const CommunicatorSite& site, const FabricRoutes& routes);

/// Parents in NCCL's binary tree of `nodes`, in which node 0 is the root; the root's parent is itself.
std::vector<std::uint64_t> binary_tree(std::uint64_t nodes);

}  // namespace zeroplan
