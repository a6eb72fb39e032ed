#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "zeroplan/collective_cost.hpp"

namespace zeroplan {

/// What leaves each leaf switch upwards, and what comes down to it, by leaf: in units of the flow's bytes.
struct LeafCrossing {
    std::map<std::uint64_t, double> up, down;
    LeafCrossing& operator+=(const LeafCrossing& other);
    friend bool operator==(const LeafCrossing&, const LeafCrossing&) = default;
};

/// Of a collective of one communicator whose ranks are on nodes of these leaves, node after node as ranks are
/// numbered, with `ranks` in all.
///
/// A ring passes each edge between neighbouring nodes on every rail; NCCL joins nodes in the order of ranks
/// (graph/rings.cc, connect.cc). Trees are NCCL's double binary tree (graph/trees.cc: ncclGetDtree), each of
/// whose edges is passed up and down with half of the buffer. An all-to-all goes from each rank to each.
LeafCrossing leaf_crossing(const CollectiveCost& cost, const std::vector<std::uint64_t>& leaves,
                           std::uint64_t ranks);

/// Parents in NCCL's binary tree of `nodes`, in which node 0 is the root; the root's parent is itself.
std::vector<std::uint64_t> binary_tree(std::uint64_t nodes);

}  // namespace zeroplan
