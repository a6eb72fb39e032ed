#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/import.hpp"

namespace zeroplan {

/// What a description of one machine says about it.
struct NodeFacts {
    std::uint64_t gpus = 1;
    /// NVLinks between each pair of GPUs, row by row; 0 = the pair has none. Links to a switch count for
    /// every pair.
    std::vector<std::vector<std::uint64_t>> links;
    bool switched = false;        ///< the links go to NVSwitches
    std::uint64_t rails = 0;      ///< network adapters near a GPU
    double rail_bytes_per_s = 0;  ///< of one; 0 = unknown
    InterNodeKind network = InterNodeKind::infiniband;
    std::string source;                    ///< "nvidia-smi topo -m"
    std::uint32_t compute_capability = 0;  ///< 0 = unknown
};

/// How the GPUs are connected, by the links alone: a switch where every pair shows as many links as a GPU can
/// have, pairs or a mesh where they have fewer, else PCIe. `links_of_gpu` = 0: unknown.
IntraNode intra_node_of(const NodeFacts& facts, std::uint64_t links_of_gpu);

/// Adds figures, and the topology in the format of topologies/*.json if the GPU is known: its model stands in
/// none of these files. Throws Error{invalid_input} if the GPU named can't have the links described.
void add_topology(Import& import, const NodeFacts& facts, const ImportContext& context);

}  // namespace zeroplan
