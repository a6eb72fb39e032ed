#pragma once
#include "step_graph.hpp"
#include "zeroplan/collective_cost.hpp"

namespace zeroplan::test {

/// A collective that switches reduce or hand on, message by message: what the library simulates as one flow.
struct StarMessages {
    CollectiveKind kind = CollectiveKind::all_reduce;
    CollectiveCost cost;               ///< the bytes, and how fast the algorithm is
    std::vector<std::uint64_t> nodes;  ///< of the fabric, in the order of ranks
    std::uint64_t rails = 1;           ///< NICs of each
    double nic_bytes_per_s = 0;
    std::uint64_t nodes_per_leaf = 1;
    double leaf_bytes_per_s = 0;  ///< up from a leaf switch, and down to it
    std::uint64_t chunks = 1;     ///< that a NIC's part of the buffer is cut into
};

/// Of an all-reduce a chunk goes up from each NIC of a rail to its leaf switch, once from each leaf switch to
/// the one above, and the same way down. Of an all-gather each node's chunk goes up, and down to all others,
/// once over each link. Every link takes the messages of a rail one after the other.
sim::StepGraph star_messages(const StarMessages& star);

}  // namespace zeroplan::test
