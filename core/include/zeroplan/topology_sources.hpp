#pragma once
#include <string>
#include <vector>

#include "zeroplan/cluster_spec.hpp"

namespace zeroplan {

/// NVLinks between the GPUs `a` and `b` of a node, a < b.
struct MeshLinks {
    std::uint64_t a = 0, b = 0, links = 1;
    friend bool operator==(const MeshLinks&, const MeshLinks&) = default;
};

/// Where the figures of a cluster's links come from, as its files state it; "" where they state nothing, or
/// where the scenario brings figures of its own.
struct TopologySources {
    std::string intra_node, inter_node, pcie;  ///< of the topology file
    std::string gpu_link;                      ///< of the GPU's file
    std::vector<MeshLinks> mesh;  ///< which GPUs of an nvlink_mesh are joined; none where no file states it
    friend bool operator==(const TopologySources&, const TopologySources&) = default;
};

/// Of the presets that `cluster` names, as far as its figures are still theirs.
TopologySources topology_sources(const ClusterSpec& cluster);

}  // namespace zeroplan
