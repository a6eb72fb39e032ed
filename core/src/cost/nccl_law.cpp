#include "cost/nccl_law.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace zeroplan::nccl {
namespace {

using Algorithm = CollectiveAlgorithm;
using Protocol = CollectiveProtocol;
constexpr double giga = 1e9;

/// Whether the communicator's ranks of a node reach each other over NVLink alone.
bool has_nvlink(const GroupPlacement& placement, const ClusterSpec& cluster) {
    return cluster.intra_node == IntraNode::nvswitch || cluster.intra_node == IntraNode::nvlink_mesh ||
           placement.bridged;
}

/// With what the communicator's ranks of a node send to each other as the link.
LinkRates rates_of(const GroupPlacement& placement, const ClusterSpec& cluster) {
    LinkRates rates = link_rates(cluster);
    rates.intra_node_bytes_per_s = intra_rate(rates, placement.bridged);
    return rates;
}

/// Nobody says which GPU is near which NIC: a communicator reaches the share of its GPUs, one at least. It
/// has them for itself where NCCL looks for channels; that others send over them, too, the flow has to bear.
Nics nics_of(const GroupPlacement& placement, const ClusterSpec& cluster) {
    const std::uint64_t gpus = cluster.gpus_per_node, nics = nics_in_use(cluster);
    return {(placement.rails * nics + gpus - 1) / gpus, stated_nic_bytes_per_s(cluster) / giga};
}

/// As searched, or as the machine's own graph has them for communicators of all GPUs of a node.
Channels channels_of(const GroupPlacement& placement, Generation gpu, const LinkRates& rates,
                     const ClusterSpec& cluster, const Nics& nics) {
    const auto& ring = cluster.calibration.ring;
    if (!ring || placement.ranks_per_node != cluster.gpus_per_node)
        return find_channels(placement, gpu, rates, nics);
    return {ring->count, (placement.nodes > 1 ? ring->inter_bytes_per_s : ring->intra_bytes_per_s) / giga};
}

/// "24 coll channels" of NCCL's log, if somebody has read it; else 0.
double logged_channels(const Calibration& calibration) {
    const auto found = calibration.constants.find("nccl_channels");
    return found != calibration.constants.end() ? found->second : 0;
}

double log2_floor(std::uint64_t n) {
    return static_cast<double>(std::bit_width(n) - 1);
}

}  // namespace

Law::Law(const GroupPlacement& placement, const ClusterSpec& cluster)
    : placement_(placement),
      gpu_(generation(cluster.gpu.compute_capability)),
      intra_(has_nvlink(placement, cluster) || cluster.intra_node == IntraNode::xgmi ? Hardware::nvlink
                                                                                     : Hardware::pci),
      rates_(rates_of(placement, cluster)),
      nvswitch_(cluster.intra_node == IntraNode::nvswitch),
      ll128_(cluster.gpu.compute_capability >= 70 &&
             (has_nvlink(placement, cluster) || placement.ranks_per_node == 1)),
      nvls_(cluster.gpu.compute_capability >= 90 && nvswitch_ && placement.rails > 2),
      sharp_(cluster.inter_node.sharp),
      nics_(nics_of(placement, cluster)),
      channels_(channels_of(placement, gpu_, rates_, cluster, nics_)),
      logged_channels_(logged_channels(cluster.calibration)) {}

std::uint64_t Law::heads() const {
    return std::min({collnet_max_ranks, placement_.rails, nics_.count});
}

double Law::ring_steps(CollectiveKind kind) const {
    if (kind == CollectiveKind::all_reduce) return 2 * (ranks() - 1);
    return kind == CollectiveKind::broadcast ? ranks() : ranks() - 1;
}

double Law::net_latency_us(Algorithm algorithm, Protocol protocol) const {
    // With one rank a node nothing hides the network's latency: NCCL takes the tree's figure.
    const bool exposed = placement_.ranks == placement_.nodes;
    return hop_latency_us(Hardware::net, exposed ? Algorithm::tree : algorithm, protocol);
}

double Law::network_hops(CollectiveKind kind, Algorithm algorithm) const {
    if (placement_.nodes == 1) return 0;
    // Up to a switch and down again counts as one.
    if (algorithm == Algorithm::pairwise || algorithm == Algorithm::nvls || is_collnet(algorithm)) return 1;
    if (algorithm == Algorithm::pat) return log2_floor(placement_.nodes);
    if (algorithm != Algorithm::ring) return 2 * log2_floor(placement_.nodes);
    return (kind == CollectiveKind::all_reduce ? 2 : 1) * (nodes() - 1);
}

double Law::ring_latency_us(CollectiveKind kind, Protocol protocol, double bytes) const {
    const double base = base_latency_us(Algorithm::ring, protocol);
    double local = hop_latency_us(intra_, Algorithm::ring, protocol);
    const double net = net_latency_us(Algorithm::ring, protocol);
    if (kind == CollectiveKind::broadcast) return base + ranks() * (across_nodes() ? net : local);
    if (across_nodes()) local = std::max(local, net_overhead_us * (protocol == Protocol::simple ? 3 : 1));
    const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
    const double net_steps = passes * (nodes() - 1);
    const double latency = base + (ring_steps(kind) - net_steps) * local + net_steps * net;
    const bool plateau = kind == CollectiveKind::all_reduce && protocol == Protocol::simple &&
                         across_nodes() && bytes / (channels_.count * ranks()) >= 64;
    if (!plateau) return latency;
    return latency * (gpu_ == Generation::volta ? 1.9 : 1.4);
}

double Law::ring_bus_gb(Protocol protocol) const {
    const double bus = channels_.bus_gb_per_s();
    switch (protocol) {
        case Protocol::ll:
            return std::min(ll_max_gb(gpu_, placement_.nodes), bus / 2);
        case Protocol::ll128:
            return std::min(0.92 * bus, channels_.count * ring_ll128_channel_gb(gpu_));
        case Protocol::simple:
            return bus;
    }
    return bus;
}

double Law::tree_latency_us(Protocol protocol) const {
    const double local_ranks = std::floor(ranks() / nodes());
    return base_latency_us(Algorithm::tree, protocol) +
           2 * ((local_ranks - 1) * hop_latency_us(intra_, Algorithm::tree, protocol) +
                log2_floor(placement_.nodes) * net_latency_us(Algorithm::tree, protocol));
}

double Law::tree_bus_gb(Protocol protocol, double bytes) const {
    const std::uint64_t n = placement_.nodes;
    // On two nodes NCCL counts with the speed inside a node.
    const double channel =
        n == 2 ? chain_channels(channels_, placement_, gpu_, rates_).intra_gb : channels_.gb_per_s;
    double bus = std::min(0.92 * channels_.count * channel, channels_.count * tree_channel_gb(gpu_, n));
    if (protocol == Protocol::ll) bus = std::min(bus / 3.8, ll_max_gb(gpu_, n));
    if (protocol == Protocol::ll128)
        bus = std::min(bus * (n == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                       channels_.count * tree_ll128_channel_gb(gpu_, n));
    return bus * tree_size_factor(protocol, static_cast<std::uint64_t>(bytes));
}

double Law::nvls_latency_us(Algorithm algorithm) const {
    const double local = hop_latency_us(intra_, algorithm, Protocol::simple);
    if (!across_nodes()) return local;
    const double hops = algorithm == Algorithm::nvls_tree ? 2 * log2_floor(placement_.nodes) : 1;
    return local + hops * hop_latency_us(Hardware::net, algorithm, Protocol::simple);
}

double Law::nvls_bus_gb(CollectiveKind kind, Algorithm algorithm) const {
    const auto count =
        static_cast<double>(across_nodes() ? heads() : std::min(nvls_max_heads, placement_.rails));
    const auto speeds = channel_speeds_gb(gpu_, false);
    const double share = rates_.intra_node_bytes_per_s / giga / count;
    const auto step = std::find_if(speeds.begin(), speeds.end(), [share](double s) { return s <= share; });
    const double local = ranks() / nodes();
    const double intra = (step == speeds.end() ? share : *step) * nvls_efficiency(gpu_) * (count - 1) /
                         count * (kind == CollectiveKind::all_reduce ? 2 : (local - 1) / local);
    if (!across_nodes()) return count * intra;
    if (algorithm == Algorithm::nvls) return count * std::min(intra, channel_of_nic_gb(nic_gb(), gpu_));
    const double inter = channels_.bus_gb_per_s() / count;
    return count * std::min({intra, inter * (placement_.nodes == 2 ? 2 : 1),
                             nvls_tree_channel_gb(gpu_, placement_.nodes)});
}

/// source: tuning.cc, ncclTopoTuneModel, the case of NCCL_ALGO_PAT
double Law::pat_latency_us() const {
    constexpr double overlap = 3.5, us_a_rank = 2.8;
    return base_latency_us(Algorithm::pat, Protocol::simple) +
           log2_floor(placement_.nodes) * hop_latency_us(Hardware::net, Algorithm::pat, Protocol::simple) /
               overlap +
           us_a_rank * ranks();
}

double Law::pat_algorithm_gb() const {
    constexpr double share_of_bus = 0.75;
    return share_of_bus * channels_.bus_gb_per_s();
}

double Law::message_latency_us() const {
    return base_latency_us(Algorithm::ring, Protocol::simple) +
           hop_latency_us(across_nodes() ? Hardware::net : intra_, Algorithm::ring, Protocol::simple);
}

}  // namespace zeroplan::nccl
