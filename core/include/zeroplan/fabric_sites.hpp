#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/fabric_routes.hpp"
#include "zeroplan/what_if.hpp"

namespace zeroplan {

/// Where the nodes of a job and of the one in the background are.
struct FabricSites {
    std::uint64_t nodes = 0;                     ///< of the fabric
    std::vector<std::uint64_t> job, background;  ///< by node of the job: the fabric's
    friend bool operator==(const FabricSites&, const FabricSites&) = default;
};

/// What `what_if` asks for, in whichever way it says so: leaf switches are a fat tree of two levels.
FabricSpec fabric_of(const WhatIf& what_if);

/// Nodes of a torus.
std::uint64_t torus_nodes(const FabricSpec& torus);

/// "leaf switches of 4 nodes, oversubscribed 2 to 1, the job packed".
std::string describe(const FabricSpec& fabric, const Placement& placement);

/// How the job in the background is placed: as it says, else as this job, packed where that has a list.
Placement background_placement(const WhatIf& what_if);

/// Nodes that `gpus_used` ranks fill.
std::uint64_t nodes_in_use(const ClusterSpec& cluster);

/// Both jobs on as few leaf switches as hold them, or as many as their lists of nodes need; a torus is as
/// large as it says. This job takes its nodes first, the other one in its own manner of those that are left:
/// packed one after the other, spread one of each leaf switch or row of a torus in turn. Nothing on a single
/// switch.
FabricSites place_jobs(const WhatIf& what_if, std::uint64_t nodes, std::uint64_t background_nodes);

/// Of the fabric between `nodes` nodes of the cluster.
FabricRoutes fabric_routes(const WhatIf& what_if, const ClusterSpec& cluster, std::uint64_t nodes);

/// A job on a fabric, and who is beside it.
struct JobSites {
    FabricRoutes routes;
    std::vector<std::uint64_t> nodes;  ///< of the fabric, by node of the job
    Crossing others;  ///< what the other job's nodes would send over the links, each to everywhere
};
JobSites job_sites(const FabricRoutes& routes, const FabricSites& sites,
                   const std::vector<std::uint64_t>& own, const std::vector<std::uint64_t>& others);

}  // namespace zeroplan
