#pragma once
#include <string>

#include "zeroplan/cluster_spec.hpp"

namespace zeroplan {

/// Where the figures of a cluster's links come from, as its files state it; "" where they state nothing, or
/// where the scenario brings figures of its own.
struct TopologySources {
    std::string intra_node, inter_node, pcie;  ///< of the topology file
    std::string gpu_link;                      ///< of the GPU's file
    friend bool operator==(const TopologySources&, const TopologySources&) = default;
};

/// Of the presets that `cluster` names, as far as its figures are still theirs.
TopologySources topology_sources(const ClusterSpec& cluster);

}  // namespace zeroplan
