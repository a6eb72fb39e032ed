#pragma once
#include "cost/nccl_tables.hpp"
#include "zeroplan/collective_cost.hpp"

namespace zeroplan::nccl {

/// Channels and the speed of each that NCCL's graph search ends with: the most that the links carry.
struct Channels {
    double count = 0, gb_per_s = 0;
    double bus_gb_per_s() const { return count * gb_per_s; }
};
/// NICs of a node that a communicator reaches, and what each of them states.
struct Nics {
    std::uint64_t count = 0;
    double gb_per_s = 0;
};
/// Between nodes on the node's `nics`. source: graph/search.cc, graph/connect.cc (NCCL 2.30)
Channels find_channels(const GroupPlacement& placement, Generation gpu, const LinkRates& rates,
                       const Nics& nics);

/// Channels between nodes whose speed inside a node is another one.
struct TwoSpeeds {
    double count = 0, inter_gb = 0, intra_gb = 0;
};
/// Trees and CollNet's chains on the channels of the ring `found`: inside a node NCCL raises their speed to
/// twice that between nodes where the links carry it, which it counts with on two nodes and for CollNet.
/// source: graph/search.cc, ncclTopoCompute, "increase bwIntra for trees (2 nodes or collnet)"
TwoSpeeds chain_channels(const Channels& found, const GroupPlacement& placement, Generation gpu,
                         const LinkRates& rates);
/// Of CollNetDirect: a channel for each head and its NIC of `nic_gb`, which scatters to and gathers from all
/// GPUs of its node.
/// source: graph/search.cc, ncclTopoSearchTryCollnetDirect
TwoSpeeds direct_channels(std::uint64_t heads, double nic_gb, const GroupPlacement& placement, Generation gpu,
                          const LinkRates& rates);
/// The fastest speed of a channel between nodes that a NIC carries; of one below all of them, its own.
double channel_of_nic_gb(double nic_gb, Generation gpu);

}  // namespace zeroplan::nccl
