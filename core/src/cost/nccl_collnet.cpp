#include <algorithm>
#include <cmath>

#include "cost/nccl_communicator.hpp"

// CollNet: the switches of the network reduce (NVIDIA SHARP), so that a head sends its part of the buffer up
// once and gets it back once, however many nodes there are. source: src/graph/tuning.cc, ncclTopoTuneModel
// (NCCL 2.30)
namespace zeroplan::nccl {
namespace {

using Algorithm = CollectiveAlgorithm;
using Protocol = CollectiveProtocol;

std::uint64_t divided_up(std::uint64_t value, std::uint64_t by) {
    return (value + by - 1) / by;
}

}  // namespace

double Law::collnet_latency_us(Algorithm algorithm) const {
    constexpr double us_a_peer = 0.4;  // messages to a head come one after the other
    const double peers = std::floor(ranks() / nodes()) - 1;
    const double hop = hop_latency_us(intra_, algorithm, Protocol::simple);
    const double local =
        algorithm == Algorithm::collnet_chain ? peers * hop : std::min(1.0, peers) * hop + peers * us_a_peer;
    return base_latency_us(algorithm, Protocol::simple) + 2 * local +
           net_latency_us(algorithm, Protocol::simple);
}

/// Full speed takes a NIC for every GPU.
double Law::collnet_direct_algorithm_gb(CollectiveKind kind) const {
    const TwoSpeeds channels = direct_channels(heads(), nic_gb(), placement_, gpu_, rates_);
    const double local = ranks() / nodes();
    if (kind != CollectiveKind::all_reduce) {
        constexpr double network_share = 0.9;
        return local * std::min(channels.intra_gb, network_share * channels.inter_gb);
    }
    const double gpus_a_nic = local / channels.count;
    const double slowed = gpus_a_nic - (gpus_a_nic - 1) / 2;
    const double newer = gpu_ == Generation::hopper || gpu_ == Generation::blackwell ? 0.85 : 1;
    return channels.count * channels.intra_gb / slowed * newer / 2;
}

double Law::collnet_chain_algorithm_gb() const {
    const TwoSpeeds channels = chain_channels(channels_, placement_, gpu_, rates_);
    return channels.count * channels.intra_gb / 2;
}

/// What NICs and links carry where switches between nodes reduce. Of an all-reduce a NIC sends its part of
/// the buffer and gets it back. It gets of an all-gather what other nodes bring, and sends of a
/// reduce-scatter all of its part, since switches add that up, too. `local_units` pass a GPU's link for that;
/// of an all-gather what the node itself brings is added, rounded up to whole units.
void Communicator::set_star_load(CollectiveCost& cost, CollectiveKind kind, std::uint64_t local_units) const {
    const std::uint64_t nodes = law_.placement().nodes;
    // Only the heads' NICs are used.
    const std::uint64_t nic = divided_up(law_.placement().ranks_per_node * law_.nics(), law_.heads());
    if (kind != CollectiveKind::all_gather) return set_load(cost, cost.bytes, nic, local_units);
    set_load(cost, cost.bytes * (law_.nodes() - 1) / law_.nodes(), nic,
             divided_up(local_units * nodes, nodes - 1));
}

/// Of an all-reduce each GPU sends its buffer to the heads, and a head its part to all GPUs; of the others a
/// GPU, which is a head then, sends or gets what all others of the node do.
CollectiveCost Communicator::collnet_direct(CollectiveKind kind, double bytes) const {
    CollectiveCost cost =
        collnet_entry(Algorithm::collnet_direct, bytes, law_.collnet_direct_algorithm_gb(kind));
    const std::uint64_t local = law_.placement().ranks_per_node, rails = law_.placement().rails;
    const std::uint64_t heads = law_.heads();
    set_star_load(cost, kind,
                  kind == CollectiveKind::all_reduce ? divided_up((heads + local - 2) * rails * local, heads)
                                                     : rails * (local - 1));
    return cost;
}

/// Up and down the chain, as a tree's.
CollectiveCost Communicator::collnet_chain(double bytes) const {
    CollectiveCost cost = collnet_entry(Algorithm::collnet_chain, bytes, law_.collnet_chain_algorithm_gb());
    const std::uint64_t local = law_.placement().ranks_per_node;
    set_load(cost, bytes, local, 2 * law_.placement().rails * (local - 1));
    return cost;
}

void Communicator::add_switched(std::vector<CollectiveCost>& entries, CollectiveKind kind,
                                double bytes) const {
    const bool reduces_all = kind == CollectiveKind::all_reduce;
    const bool has_heads = law_.network_reduces() && (reduces_all || law_.all_are_heads());
    const bool fits_nvls = reduces_all || law_.placement().ranks_per_node <= nvls_max_scattered;
    if (law_.has_nvls() && fits_nvls && (has_heads || !law_.across_nodes()))
        entries.push_back(nvls(kind, bytes));
    if (law_.has_collnet_direct() && has_heads) entries.push_back(collnet_direct(kind, bytes));
    if (law_.has_collnet_chain() && reduces_all) entries.push_back(collnet_chain(bytes));
}

CollectiveCost Communicator::collnet_entry(Algorithm algorithm, double bytes, double algorithm_gb) const {
    return {.algorithm = algorithm,
            .protocol = Protocol::simple,
            .latency_s = law_.collnet_latency_us(algorithm) * 1e-6,
            .bytes = bytes,
            .cap_bytes_per_s = algorithm_gb * 1e9};
}

}  // namespace zeroplan::nccl
