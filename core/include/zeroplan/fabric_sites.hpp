#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/what_if.hpp"

namespace zeroplan {

/// A node of a job on leaf switches.
struct NodeSite {
    std::uint64_t leaf = 0;
    std::uint64_t neighbours = 0;  ///< nodes of another job on its leaf
    friend bool operator==(const NodeSite&, const NodeSite&) = default;
};

/// Where the nodes of a job and of the one in the background stand on leaf switches.
struct FabricSites {
    std::uint64_t leaves = 0;
    std::vector<std::uint64_t> job, background;  ///< by node of the job: its leaf
    friend bool operator==(const FabricSites&, const FabricSites&) = default;
};

/// Whether leaf switches hold anything back: those that are not oversubscribed pass all that NICs send.
bool blocks(const std::optional<LeafSwitches>& leaf_switches);

/// "leaf switches of 4 nodes, oversubscribed 2 to 1, this job packed".
std::string describe(const LeafSwitches& leaf_switches, const Placement& placement);

/// How the job in the background is placed: as it says, else as this job, packed where that has a list.
Placement background_placement(const WhatIf& what_if);

/// Nodes that `gpus_used` ranks fill.
std::uint64_t nodes_in_use(const ClusterSpec& cluster);

/// Both jobs on as few leaf switches as hold them, or as many as their lists of nodes need. This job takes
/// its nodes first, the other one in its own manner of those that are left. Nothing where switches don't
/// block.
FabricSites place_jobs(const WhatIf& what_if, std::uint64_t nodes, std::uint64_t background_nodes);

/// The nodes of a job on leaves `own`, with how many of the other job's, on leaves `others`, are beside each.
std::vector<NodeSite> node_sites(const std::vector<std::uint64_t>& own,
                                 const std::vector<std::uint64_t>& others);

}  // namespace zeroplan
