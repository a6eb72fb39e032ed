#include "cost/nccl_communicator.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "cost/constants.hpp"

namespace zeroplan::nccl {
namespace {

using Algorithm = CollectiveAlgorithm;
using Protocol = CollectiveProtocol;
constexpr double giga = 1e9;

CollectiveCost entry(Algorithm algorithm, Protocol protocol, double latency_us, double bytes,
                     double algorithm_gb) {
    return {.algorithm = algorithm,
            .protocol = protocol,
            .latency_s = latency_us * 1e-6,
            .bytes = bytes,
            .cap_bytes_per_s = algorithm_gb * giga};
}

bool allowed(const CollectiveCost& cost, const CollectiveChoice& choice) {
    return (!choice.algorithm || *choice.algorithm == cost.algorithm) &&
           (!choice.protocol || *choice.protocol == cost.protocol);
}

}  // namespace

Communicator::Communicator(const GroupPlacement& placement, const ClusterSpec& cluster)
    : law_(placement, cluster),
      constants_(&cost::constants(cluster.calibration)),
      slow_hop_s_(cluster.inter_node.kind == InterNodeKind::efa ? constants_->efa_hop_s.value : 0) {}

/// What measurements show beyond NCCL's law: its figures choose an algorithm, they don't tell the time of
/// small and middle sizes.
double Communicator::overhead_s(CollectiveKind kind, const CollectiveCost& cost) const {
    const cost::Constants& c = *constants_;
    const auto ramp = [&](const Constant& seconds, const Constant& half) {
        return seconds.value * cost.bytes / (cost.bytes + half.value);
    };
    double overhead = c.collective_start_s.value + ramp(c.collective_ramp_s, c.collective_ramp_bytes) +
                      slow_hop_s_ * law_.network_hops(kind, cost.algorithm);
    if (law_.across_nodes()) overhead += ramp(c.network_ramp_s, c.network_ramp_bytes);
    const double reached = (law_.across_nodes() ? c.network_payload : c.local_payload).value;
    return overhead + cost.transfer_s * (1 / reached - 1);
}

void Communicator::set_load(CollectiveCost& cost, double bytes, std::uint64_t nic,
                            std::uint64_t intra) const {
    if (!law_.across_nodes()) nic = 0;
    const std::uint64_t common = std::max<std::uint64_t>(1, std::gcd(nic, intra));
    cost.nic_weight = static_cast<std::uint32_t>(nic / common);
    cost.intra_weight = static_cast<std::uint32_t>(intra / common);
    cost.on_bridge = law_.placement().bridged && intra > 0;
    cost.unit_bytes = bytes * static_cast<double>(common) / static_cast<double>(law_.placement().rails) /
                      static_cast<double>(law_.placement().ranks_per_node);
    cost.transfer_s = cost.bytes / cost.cap_bytes_per_s;
    if (intra > 0)
        cost.transfer_s = std::max(cost.transfer_s,
                                   cost.intra_weight * cost.unit_bytes / law_.rates().intra_node_bytes_per_s);
    if (nic > 0)
        cost.transfer_s =
            std::max(cost.transfer_s, cost.nic_weight * cost.unit_bytes / law_.rates().nic_bytes_per_s);
}

/// Channels share the rails, so a NIC carries 1 / rails of what passes an edge, and a GPU's link the part of
/// the channels whose next rank is on the same node.
CollectiveCost Communicator::ring(CollectiveKind kind, Protocol protocol, double bytes) const {
    const double passes = law_.ring_steps(kind) / law_.ranks();
    CollectiveCost cost = entry(Algorithm::ring, protocol, law_.ring_latency_us(kind, protocol, bytes), bytes,
                                law_.ring_bus_gb(protocol) / passes);
    const std::uint64_t local = law_.placement().ranks_per_node, rails = law_.placement().rails;
    set_load(cost, bytes * passes, local, rails * (law_.across_nodes() ? local - 1 : local));
    return cost;
}

/// Every edge of the double binary tree is passed up and down; with two nodes only half of the buffer goes up
/// from each.
CollectiveCost Communicator::tree(Protocol protocol, double bytes) const {
    CollectiveCost cost = entry(Algorithm::tree, protocol, law_.tree_latency_us(protocol), bytes,
                                law_.tree_bus_gb(protocol, bytes) / 2);
    const std::uint64_t local = law_.placement().ranks_per_node, passes = law_.placement().nodes == 2 ? 1 : 2;
    set_load(cost, bytes, passes * local, 2 * law_.placement().rails * (local - 1));
    return cost;
}

/// The node's switch reduces, or hands on what is gathered: a GPU's link carries the buffer once. Across
/// nodes the network's switches do the same.
CollectiveCost Communicator::nvls(CollectiveKind kind, double bytes) const {
    const double bus_gb = law_.nvls_bus_gb(kind, Algorithm::nvls);
    const double passes = law_.ring_steps(kind) / law_.ranks();
    // NCCL's model takes the bandwidth of gathers and scatters for the algorithm's.
    CollectiveCost cost = entry(Algorithm::nvls, Protocol::simple, law_.nvls_latency_us(Algorithm::nvls),
                                bytes, kind == CollectiveKind::all_reduce ? bus_gb / passes : bus_gb);
    const std::uint64_t local_units = law_.placement().rails * law_.placement().ranks_per_node;
    if (law_.across_nodes())
        set_star_load(cost, kind, local_units);
    else
        set_load(cost, bytes, 0, local_units);
    return cost;
}

/// Trees join the nodes.
CollectiveCost Communicator::nvls_tree(double bytes) const {
    const double passes = law_.ring_steps(CollectiveKind::all_reduce) / law_.ranks();
    CollectiveCost cost =
        entry(Algorithm::nvls_tree, Protocol::simple, law_.nvls_latency_us(Algorithm::nvls_tree), bytes,
              law_.nvls_bus_gb(CollectiveKind::all_reduce, Algorithm::nvls_tree) / passes);
    const std::uint64_t up_and_down = law_.placement().nodes == 2 ? 1 : 2;
    set_load(cost, bytes, up_and_down * law_.placement().ranks_per_node,
             law_.placement().rails * law_.placement().ranks_per_node);
    return cost;
}

/// A rank's NIC carries what every other rank gives or gets, as in a ring.
CollectiveCost Communicator::pat(CollectiveKind kind, double bytes) const {
    CollectiveCost cost =
        entry(Algorithm::pat, Protocol::simple, law_.pat_latency_us(), bytes, law_.pat_algorithm_gb());
    set_load(cost, bytes * law_.ring_steps(kind) / law_.ranks(), 1, 0);
    return cost;
}

/// Messages from each rank to each (ncclSend and ncclRecv in one group): of a rank's buffer the share of the
/// other ranks of the node crosses its GPU's link, that of other nodes its NIC.
CollectiveCost Communicator::all_to_all(double bytes) const {
    const std::uint64_t local = law_.placement().ranks_per_node;
    CollectiveCost cost = entry(Algorithm::pairwise, Protocol::simple, law_.message_latency_us(), bytes, 0);
    cost.cap_bytes_per_s = std::max(law_.rates().intra_node_bytes_per_s, law_.rates().nic_bytes_per_s) *
                           law_.ranks() / std::max(1.0, law_.ranks() - 1);
    // set_load counts in units of bytes / (rails · local): scaled so that a unit is what one peer gets.
    const auto units = static_cast<double>(law_.placement().rails * local);
    set_load(cost, bytes * units / law_.ranks(), law_.placement().ranks - local, local - 1);
    return cost;
}

CollectiveCost Communicator::message(double bytes) const {
    const bool across = law_.across_nodes();
    CollectiveCost cost =
        entry(Algorithm::pairwise, Protocol::simple, law_.message_latency_us(), bytes,
              (across ? law_.rates().nic_bytes_per_s : law_.rates().intra_node_bytes_per_s) / giga);
    const auto units = static_cast<double>(law_.placement().rails * law_.placement().ranks_per_node);
    set_load(cost, bytes * units, across ? 1 : 0, across ? 0 : 1);
    cost.overhead_s = overhead_s(CollectiveKind::broadcast, cost);
    set_occupancy(cost, CollectiveKind::broadcast);
    return cost;
}

/// What NCCL's tuning model compares.
std::vector<CollectiveCost> Communicator::candidates(CollectiveKind kind, double bytes) const {
    std::vector<CollectiveCost> entries;
    const bool reduces_all = kind == CollectiveKind::all_reduce;
    for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
        if (protocol == Protocol::ll128 && !law_.has_ll128()) continue;
        entries.push_back(ring(kind, protocol, bytes));
        if (reduces_all) entries.push_back(tree(protocol, bytes));
    }
    const bool scatters = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
    if (reduces_all && law_.has_nvls() && law_.across_nodes()) entries.push_back(nvls_tree(bytes));
    if (reduces_all || scatters) add_switched(entries, kind, bytes);
    if (scatters && law_.has_pat()) entries.push_back(pat(kind, bytes));
    return entries;
}

bool Communicator::has(CollectiveKind kind, const CollectiveChoice& choice) const {
    if (kind == CollectiveKind::all_to_all) return false;
    const std::vector<CollectiveCost> entries = candidates(kind, 1);
    return std::any_of(entries.begin(), entries.end(),
                       [&](const CollectiveCost& entry) { return allowed(entry, choice); });
}

CollectiveCost Communicator::cheapest(CollectiveKind kind, double bytes,
                                      const CollectiveChoice& choice) const {
    if (kind == CollectiveKind::all_to_all) {
        CollectiveCost cost = all_to_all(bytes);
        cost.overhead_s = overhead_s(kind, cost);
        set_occupancy(cost, kind);
        return cost;
    }
    std::vector<CollectiveCost> entries = candidates(kind, bytes);
    std::erase_if(entries, [&](const CollectiveCost& entry) { return !allowed(entry, choice); });
    if (entries.empty())
        throw Error(ErrorCode::not_supported,
                    fmt::format("{} of {} ranks on {} nodes can't run with the forced algorithm and protocol",
                                to_string(kind), law_.placement().ranks, law_.placement().nodes),
                    choice.algorithm && is_collnet(*choice.algorithm) && !law_.network_reduces()
                        ? "leave the choice to NCCL, or say that the network's switches reduce: "
                          "cluster.inter_node.sharp, on two nodes at least"
                        : "leave the choice to NCCL");
    const auto estimate = [](const CollectiveCost& c) { return c.latency_s + c.bytes / c.cap_bytes_per_s; };
    CollectiveCost best =
        *std::min_element(entries.begin(), entries.end(),
                          [&](const auto& a, const auto& b) { return estimate(a) < estimate(b); });
    best.overhead_s = overhead_s(kind, best);
    set_occupancy(best, kind);
    return best;
}

}  // namespace zeroplan::nccl
