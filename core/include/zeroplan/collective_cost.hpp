#pragma once
#include <cstdint>
#include <string>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/collective_choice.hpp"
#include "zeroplan/step_program.hpp"
#include "zeroplan/training_config.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan {

/// How the ranks of a communicator lie on nodes; of several groups alike, the one spread worst.
struct GroupPlacement {
    std::uint64_t ranks = 1, nodes = 1;
    std::uint64_t ranks_per_node = 1;  ///< on the fullest node
    std::uint64_t rails = 1;           ///< ranks, and so NICs, on the emptiest node
    bool bridged = false;              ///< on each node they are one pair of cards joined by an NVLink bridge
    friend bool operator==(const GroupPlacement&, const GroupPlacement&) = default;
};

/// How many ranks the groups have.
struct GroupSizes {
    std::uint64_t shard = 1, tensor = 1, context = 1, pipeline = 1, expert = 1, expert_tensor = 1,
                  secondary_shard = 1;
    friend bool operator==(const GroupSizes&, const GroupSizes&) = default;
};
GroupSizes group_sizes(const TrainingConfig& training, std::uint64_t shard_group);

/// Ranks fill nodes in order, numbered tensor, context, data, pipeline: tensor groups are consecutive ranks,
/// shard groups every tensor-th, replica groups every (tensor · shard)-th rank of one pipeline stage,
/// embedding groups a rank of the first and the one at its place on the last stage.
GroupPlacement group_placement(GroupKind group, const GroupSizes& sizes, const ClusterSpec& cluster);
/// The same with data parallelism alone.
GroupPlacement group_placement(GroupKind group, std::uint64_t shard_group, const ClusterSpec& cluster);

/// Payload rates of one GPU's links, per direction.
struct LinkRates {
    double intra_node_bytes_per_s = 0;          ///< NVLink, PCIe …: the figure NCCL counts with
    double bridge_bytes_per_s = 0;              ///< between the two GPUs of a bridged pair; 0: there are none
    double nic_bytes_per_s = 0;                 ///< 0 if the cluster has no network
    double local_share = 1, network_share = 1;  ///< of these rates that a collective reaches
    friend bool operator==(const LinkRates&, const LinkRates&) = default;
};
LinkRates link_rates(const ClusterSpec& cluster);
/// NICs of a node that its GPUs send over: several of one GPU are one.
std::uint64_t nics_in_use(const ClusterSpec& cluster);
/// What each of them states, whatever the network makes of it.
double stated_nic_bytes_per_s(const ClusterSpec& cluster);
/// What reports call the link between the GPUs of a node, and the bridge of a pair.
std::string intra_node_link_name(const ClusterSpec& cluster);
inline constexpr const char* bridge_name = "nvlink bridge";
/// Of the link between GPUs that a flow crosses.
inline double intra_rate(const LinkRates& rates, bool on_bridge) {
    return on_bridge ? rates.bridge_bytes_per_s : rates.intra_node_bytes_per_s;
}

/// One collective: a start-up, then a flow that is coupled over all links it crosses. An
/// intra-node link carries intra_weight · unit_bytes, a NIC nic_weight · unit_bytes, and the flow is never
/// faster than cap_bytes_per_s.
struct CollectiveCost {
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::copy;
    CollectiveProtocol protocol = CollectiveProtocol::simple;
    double latency_s = 0;   ///< as NCCL's tuning model has it
    double overhead_s = 0;  ///< measured beyond that: start of the kernel, ramp to full bandwidth, slow NICs
    double bytes = 0;       ///< of the whole buffer: nccl-tests' size
    double cap_bytes_per_s = 0;  ///< of the buffer's bytes: the algorithm's bandwidth; 0: nothing flows
    double unit_bytes = 0;
    std::uint32_t intra_weight = 0, nic_weight = 0;
    bool on_bridge = false;   ///< the intra-node link is the bridge of a pair
    double transfer_s = 0;    ///< the flow alone on its links
    double channels = 0;      ///< thread blocks of the kernel on each GPU, as for a large buffer
    double memory_bytes = 0;  ///< of device memory that it reads and writes on a GPU

    double start_s() const { return latency_s + overhead_s; }
    double seconds() const { return start_s() + transfer_s; }
    friend bool operator==(const CollectiveCost&, const CollectiveCost&) = default;
};

/// NCCL 2.30's latency and bandwidth law: the cheapest of Ring, Tree, NVLS, NVLSTree, PAT and, where the
/// network's switches reduce, CollNet, with LL, LL128 and Simple, as NCCL chooses; on the host back end,
/// copies through shared memory. `bytes` is the whole buffer. Throws Error{invalid_input} if the group needs
/// a link that the cluster has not got.
CollectiveCost collective_cost(CollectiveKind kind, Bytes bytes, const GroupPlacement& placement,
                               const ClusterSpec& cluster, const CollectiveChoice& choice = {});
/// True if NCCL has an algorithm and protocol of the choice for the collective on these ranks; where it has
/// none, a step's collective runs as NCCL chooses: trees reduce only, and switches only where there are such.
bool can_force(CollectiveKind kind, const GroupPlacement& placement, const ClusterSpec& cluster,
               const CollectiveChoice& choice);
/// One message of `bytes` from a rank to one `across_nodes`, or on its own node; of nodes with several
/// bridged pairs, over PCIe, as the stages of two pairs send to each other.
CollectiveCost message_cost(Bytes bytes, bool across_nodes, const ClusterSpec& cluster);

}  // namespace zeroplan
