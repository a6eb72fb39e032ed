#include "zeroplan/collective_cost.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cost/constants.hpp"
#include "cost/measured_collectives.hpp"
#include "cost/nccl_communicator.hpp"

namespace zeroplan {
namespace {

/// The host back end copies through shared memory: every rank moves what a ring would carry over its edge.
CollectiveCost shared_memory_cost(CollectiveKind kind, double bytes, const GroupPlacement& placement,
                                  const LinkRates& rates, double barrier_s) {
    const auto n = static_cast<double>(placement.ranks);
    const double passes =
        kind == CollectiveKind::broadcast ? 1 : (kind == CollectiveKind::all_reduce ? 2 : 1) * (n - 1) / n;
    CollectiveCost cost{.algorithm = CollectiveAlgorithm::shared_memory,
                        .latency_s = barrier_s,
                        .bytes = bytes,
                        .cap_bytes_per_s = rates.intra_node_bytes_per_s / passes,
                        .unit_bytes = bytes * passes,
                        .intra_weight = 1};
    cost.transfer_s = cost.unit_bytes / rates.intra_node_bytes_per_s;
    return cost;
}

void require_links(const GroupPlacement& placement, const LinkRates& rates, const ClusterSpec& cluster) {
    if (placement.nodes > 1 && !(rates.nic_bytes_per_s > 0))
        throw Error(
            ErrorCode::invalid_input,
            fmt::format("a collective of {} ranks spans {} nodes, but cluster.inter_node is {} at {} B/s",
                        placement.ranks, placement.nodes, to_string(cluster.inter_node.kind),
                        rates.nic_bytes_per_s),
            "give inter_node's kind and bytes_per_second_per_gpu, or use one node",
            {"", "/cluster/inter_node"});
    if (placement.ranks_per_node > 1 && !(rates.intra_node_bytes_per_s > 0))
        throw Error(
            ErrorCode::invalid_input,
            fmt::format("a collective has {} ranks on a node, but the GPU {} has no link between GPUs",
                        placement.ranks_per_node, cluster.gpu.name),
            "give the GPU's link_bytes_per_second, or one GPU a node", {"", "/cluster/gpu"});
}

/// GPUs of several nodes on one NVLink switch are one node to NCCL.
GroupPlacement as_nccl_sees(const GroupPlacement& placement, const ClusterSpec& cluster) {
    if (cluster.inter_node.kind != InterNodeKind::nvlink) return placement;
    return {placement.ranks, 1, placement.ranks, placement.ranks};
}

}  // namespace

CollectiveCost collective_cost(CollectiveKind kind, Bytes bytes, const GroupPlacement& placement,
                               const ClusterSpec& cluster, const CollectiveChoice& choice) {
    const auto size = static_cast<double>(bytes.count());
    if (placement.ranks <= 1 || size == 0) return {.bytes = size};
    const GroupPlacement seen = as_nccl_sees(placement, cluster);
    const LinkRates rates = link_rates(cluster);
    require_links(seen, rates, cluster);
    if (cluster.gpu.is_host && seen.nodes == 1)
        return shared_memory_cost(kind, size, seen, rates,
                                  cost::constants(cluster.calibration).host_barrier_s.value);
    const CollectiveCost cost = nccl::Communicator(seen, cluster).cheapest(kind, size, choice);
    // Measured is what NCCL chose.
    return choice == CollectiveChoice{} ? as_measured(cost, kind, placement, cluster) : cost;
}

bool can_force(CollectiveKind kind, const GroupPlacement& placement, const ClusterSpec& cluster,
               const CollectiveChoice& choice) {
    if (placement.ranks <= 1) return false;
    const GroupPlacement seen = as_nccl_sees(placement, cluster);
    if (cluster.gpu.is_host && seen.nodes == 1) return false;
    return nccl::Communicator(seen, cluster).has(kind, choice);
}

CollectiveCost message_cost(Bytes bytes, bool across_nodes, const ClusterSpec& cluster) {
    const auto size = static_cast<double>(bytes.count());
    if (size == 0) return {};
    const bool across = across_nodes && cluster.inter_node.kind != InterNodeKind::nvlink;
    const GroupPlacement pair =
        across ? GroupPlacement{2, 2, 1, 1}
               : GroupPlacement{2, 1, 2, 2,
                                std::min(cluster.gpus_per_node, cluster.gpus_used) == 2 &&
                                    cluster.intra_node == IntraNode::nvlink_pairs};
    require_links(pair, link_rates(cluster), cluster);
    return nccl::Communicator(pair, cluster).message(size);
}

}  // namespace zeroplan
