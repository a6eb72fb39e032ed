#include "zeroplan/collective_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "cost/constants.hpp"
#include "cost/nccl_tables.hpp"

namespace zeroplan {
namespace {

using Algorithm = CollectiveAlgorithm;
using Protocol = CollectiveProtocol;
constexpr double giga = 1e9;

/// A PCIe card whose catalogue link is PCIe, joined to one other by NVLink bridges.
bool is_bridged_pair(const ClusterSpec& cluster) {
    return cluster.intra_node == IntraNode::nvlink_pairs && cluster.gpu.link.starts_with("pcie") &&
           cluster.gpus_used <= 2;
}

double link_bytes_per_s(const ClusterSpec& cluster) {
    if (!is_bridged_pair(cluster)) return cluster.gpu.link_bytes_per_s;
    const cost::Constants& c = cost::constants();
    return (cluster.gpu.compute_capability == 86 ? c.small_bridge_bytes_per_s : c.bridge_bytes_per_s).value;
}

double network_efficiency(const ClusterSpec& cluster) {
    return cluster.inter_node.kind == InterNodeKind::omni_path ? cost::constants().omni_path_efficiency.value
                                                               : 1;
}

double link_efficiency(const ClusterSpec& cluster) {
    const cost::Constants& c = cost::constants();
    const std::string& link = cluster.gpu.link;
    if (cluster.gpu.is_host) return 1;
    if (is_bridged_pair(cluster)) return c.nvlink4_efficiency.value;
    if (link == "nvlink5") return c.nvlink5_efficiency.value;
    if (link == "nvlink4") return c.nvlink4_efficiency.value;
    if (link == "nvlink3") return c.nvlink3_efficiency.value;
    if (link.starts_with("nvlink")) return c.nvlink2_efficiency.value;
    if (link == "xgmi") return c.xgmi_efficiency.value;
    return c.pcie_efficiency.value *
           (cluster.intra_node == IntraNode::pcie ? c.pcie_staging_efficiency.value : 1);
}

bool has_nvlink(const ClusterSpec& cluster) {
    return cluster.intra_node == IntraNode::nvswitch || cluster.intra_node == IntraNode::nvlink_mesh ||
           cluster.intra_node == IntraNode::nvlink_pairs;
}

double log2_floor(std::uint64_t n) {
    return static_cast<double>(std::bit_width(n) - 1);
}

/// Channels and the speed of each that NCCL's graph search ends with: the most that the links carry.
struct Channels {
    double count = 0, gb_per_s = 0;
    double bus_gb_per_s() const { return count * gb_per_s; }
};

Channels fastest(std::span<const double> speeds, double links, double link_gb) {
    Channels best{links, link_gb};  // a link slower than every step of the ladder runs at its own speed
    if (link_gb < speeds.back()) return best;
    best = {};
    for (const double speed : speeds) {
        const double count = links * std::min(16.0, std::floor(link_gb / speed));
        if (count * speed > best.bus_gb_per_s()) best = {count, speed};
    }
    return best;
}

/// A communicator as NCCL's tuning model sees it.
class Communicator {
public:
    Communicator(const GroupPlacement& placement, const ClusterSpec& cluster)
        : placement_(placement),
          gpu_(nccl::generation(cluster.gpu.compute_capability)),
          intra_(has_nvlink(cluster) || cluster.intra_node == IntraNode::xgmi ? nccl::Hardware::nvlink
                                                                              : nccl::Hardware::pci),
          rates_(link_rates(cluster)),
          slow_hop_s_(cluster.inter_node.kind == InterNodeKind::efa ? cost::constants().efa_hop_s.value : 0),
          ll128_(cluster.gpu.compute_capability >= 70 &&
                 (has_nvlink(cluster) || placement.ranks_per_node == 1)),
          nvls_(cluster.gpu.compute_capability >= 90 && cluster.intra_node == IntraNode::nvswitch &&
                placement.rails > 2) {
        channels_ = search();
    }

    CollectiveCost cheapest(CollectiveKind kind, double bytes, const CollectiveChoice& choice) const;
    CollectiveCost all_to_all(double bytes) const;
    CollectiveCost message(double bytes) const;

private:
    double ranks() const { return static_cast<double>(placement_.ranks); }
    double nodes() const { return static_cast<double>(placement_.nodes); }
    /// Steps of the ring: the buffer crosses every edge steps / ranks times.
    double ring_steps(CollectiveKind kind) const {
        if (kind == CollectiveKind::all_reduce) return 2 * (ranks() - 1);
        return kind == CollectiveKind::broadcast ? ranks() : ranks() - 1;
    }
    double net_latency_us(Algorithm algorithm, Protocol protocol) const {
        // With one rank a node nothing hides the network's latency: NCCL takes the tree's figure.
        const bool exposed = placement_.ranks == placement_.nodes;
        return nccl::hop_latency_us(nccl::Hardware::net, exposed ? Algorithm::tree : algorithm, protocol);
    }
    Channels search() const;
    double network_hops(CollectiveKind kind, Algorithm algorithm) const;
    double overhead_s(CollectiveKind kind, const CollectiveCost& cost) const;
    double ring_latency_us(CollectiveKind kind, Protocol protocol, double bytes) const;
    double ring_bus_gb(Protocol protocol) const;
    double tree_latency_us(Protocol protocol) const;
    double tree_bus_gb(Protocol protocol, double bytes) const;
    double nvls_bus_gb(Algorithm algorithm) const;
    CollectiveCost entry(Algorithm algorithm, Protocol protocol, double latency_us, double bytes,
                         double algorithm_gb) const;
    CollectiveCost ring(CollectiveKind kind, Protocol protocol, double bytes) const;
    CollectiveCost tree(Protocol protocol, double bytes) const;
    CollectiveCost nvls(double bytes) const;
    /// A link's load as whole multiples of one unit: `nic` and `intra` in units of bytes / (rails · ranks a
    /// node).
    void set_load(CollectiveCost& cost, double bytes, std::uint64_t nic, std::uint64_t intra) const;

    GroupPlacement placement_;
    nccl::Generation gpu_;
    nccl::Hardware intra_;
    LinkRates rates_;
    double slow_hop_s_;
    bool ll128_, nvls_;
    Channels channels_;
};

Channels Communicator::search() const {
    const double link_gb = rates_.intra_node_bytes_per_s / giga;
    const bool across = placement_.nodes > 1;
    const auto speeds = nccl::channel_speeds_gb(gpu_, across);
    Channels found =
        across ? fastest(speeds, static_cast<double>(placement_.rails), rates_.nic_bytes_per_s / giga)
               : fastest(speeds, 1, link_gb);
    if (across && placement_.ranks_per_node > 1) {
        const auto local = static_cast<double>(placement_.ranks_per_node);
        found.gb_per_s = std::min(found.gb_per_s, link_gb * local / (local - 1) / found.count);
    }
    // Channels of 25 GB/s and more are doubled at half the speed, but on newer GPUs than A100 not those of
    // less than 50 GB/s if there are more than four.
    const bool newer = gpu_ == nccl::Generation::hopper || gpu_ == nccl::Generation::blackwell;
    const bool doubled = found.gb_per_s >= 25 && !(newer && found.gb_per_s < 50 && found.count > 4);
    return doubled ? Channels{2 * found.count, found.gb_per_s / 2} : found;
}

/// Times that the buffer's first byte crosses the network, one after the other.
double Communicator::network_hops(CollectiveKind kind, Algorithm algorithm) const {
    if (placement_.nodes == 1) return 0;
    if (algorithm == Algorithm::pairwise) return 1;
    if (algorithm != Algorithm::ring) return 2 * log2_floor(placement_.nodes);
    return (kind == CollectiveKind::all_reduce ? 2 : 1) * (nodes() - 1);
}

/// What measurements show beyond NCCL's law: its figures choose an algorithm, they don't tell the time of
/// small and middle sizes.
double Communicator::overhead_s(CollectiveKind kind, const CollectiveCost& cost) const {
    const cost::Constants& c = cost::constants();
    const auto ramp = [&](const Constant& seconds, const Constant& half) {
        return seconds.value * cost.bytes / (cost.bytes + half.value);
    };
    double overhead = c.collective_start_s.value + ramp(c.collective_ramp_s, c.collective_ramp_bytes) +
                      slow_hop_s_ * network_hops(kind, cost.algorithm);
    if (placement_.nodes > 1) overhead += ramp(c.network_ramp_s, c.network_ramp_bytes);
    const double reached = (placement_.nodes > 1 ? c.network_payload : c.local_payload).value;
    return overhead + cost.transfer_s * (1 / reached - 1);
}

double Communicator::ring_latency_us(CollectiveKind kind, Protocol protocol, double bytes) const {
    const double base = nccl::base_latency_us(Algorithm::ring, protocol);
    double local = nccl::hop_latency_us(intra_, Algorithm::ring, protocol);
    const double net = net_latency_us(Algorithm::ring, protocol);
    if (kind == CollectiveKind::broadcast) return base + ranks() * (placement_.nodes > 1 ? net : local);
    if (placement_.nodes > 1)
        local = std::max(local, nccl::net_overhead_us * (protocol == Protocol::simple ? 3 : 1));
    const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
    const double net_steps = passes * (nodes() - 1);
    const double latency = base + (ring_steps(kind) - net_steps) * local + net_steps * net;
    const bool plateau = kind == CollectiveKind::all_reduce && protocol == Protocol::simple &&
                         placement_.nodes > 1 && bytes / (channels_.count * ranks()) >= 64;
    if (!plateau) return latency;
    return latency * (gpu_ == nccl::Generation::volta ? 1.9 : 1.4);
}

double Communicator::ring_bus_gb(Protocol protocol) const {
    const double bus = channels_.bus_gb_per_s();
    switch (protocol) {
        case Protocol::ll:
            return std::min(nccl::ll_max_gb(gpu_, placement_.nodes), bus / 2);
        case Protocol::ll128:
            return std::min(0.92 * bus, channels_.count * nccl::ring_ll128_channel_gb(gpu_));
        case Protocol::simple:
            return bus;
    }
    return bus;
}

double Communicator::tree_latency_us(Protocol protocol) const {
    const double local_ranks = std::floor(ranks() / nodes());
    return nccl::base_latency_us(Algorithm::tree, protocol) +
           2 * ((local_ranks - 1) * nccl::hop_latency_us(intra_, Algorithm::tree, protocol) +
                log2_floor(placement_.nodes) * net_latency_us(Algorithm::tree, protocol));
}

double Communicator::tree_bus_gb(Protocol protocol, double bytes) const {
    const std::uint64_t n = placement_.nodes;
    double bus = std::min(0.92 * channels_.bus_gb_per_s(), channels_.count * nccl::tree_channel_gb(gpu_, n));
    if (protocol == Protocol::ll) bus = std::min(bus / 3.8, nccl::ll_max_gb(gpu_, n));
    if (protocol == Protocol::ll128)
        bus = std::min(bus * (n == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                       channels_.count * nccl::tree_ll128_channel_gb(gpu_, n));
    return bus * nccl::tree_size_factor(protocol, static_cast<std::uint64_t>(bytes));
}

double Communicator::nvls_bus_gb(Algorithm algorithm) const {
    const auto count = static_cast<double>(std::min(nccl::nvls_max_heads, placement_.rails));
    const auto speeds = nccl::channel_speeds_gb(gpu_, false);
    const double share = rates_.intra_node_bytes_per_s / giga / count;
    const auto step = std::find_if(speeds.begin(), speeds.end(), [share](double s) { return s <= share; });
    const double intra =
        (step == speeds.end() ? share : *step) * nccl::nvls_efficiency(gpu_) * (count - 1) / count * 2;
    if (algorithm == Algorithm::nvls) return count * intra;
    const double inter = channels_.bus_gb_per_s() / count * (placement_.nodes == 2 ? 2 : 1);
    return count * std::min({intra, inter, nccl::nvls_tree_channel_gb(gpu_, placement_.nodes)});
}

CollectiveCost Communicator::entry(Algorithm algorithm, Protocol protocol, double latency_us, double bytes,
                                   double algorithm_gb) const {
    return {.algorithm = algorithm,
            .protocol = protocol,
            .latency_s = latency_us * 1e-6,
            .bytes = bytes,
            .cap_bytes_per_s = algorithm_gb * giga};
}

void Communicator::set_load(CollectiveCost& cost, double bytes, std::uint64_t nic,
                            std::uint64_t intra) const {
    if (placement_.nodes == 1) nic = 0;
    const std::uint64_t common = std::max<std::uint64_t>(1, std::gcd(nic, intra));
    cost.nic_weight = static_cast<std::uint32_t>(nic / common);
    cost.intra_weight = static_cast<std::uint32_t>(intra / common);
    cost.unit_bytes = bytes * static_cast<double>(common) / static_cast<double>(placement_.rails) /
                      static_cast<double>(placement_.ranks_per_node);
    cost.transfer_s = cost.bytes / cost.cap_bytes_per_s;
    if (intra > 0)
        cost.transfer_s =
            std::max(cost.transfer_s, cost.intra_weight * cost.unit_bytes / rates_.intra_node_bytes_per_s);
    if (nic > 0)
        cost.transfer_s =
            std::max(cost.transfer_s, cost.nic_weight * cost.unit_bytes / rates_.nic_bytes_per_s);
}

/// Channels share the rails, so a NIC carries 1 / rails of what passes an edge, and a GPU's link the part of
/// the channels whose next rank is on the same node.
CollectiveCost Communicator::ring(CollectiveKind kind, Protocol protocol, double bytes) const {
    const double passes = ring_steps(kind) / ranks();
    CollectiveCost cost = entry(Algorithm::ring, protocol, ring_latency_us(kind, protocol, bytes), bytes,
                                ring_bus_gb(protocol) / passes);
    const std::uint64_t local = placement_.ranks_per_node, rails = placement_.rails;
    set_load(cost, bytes * passes, local, rails * (placement_.nodes > 1 ? local - 1 : local));
    return cost;
}

/// Every edge of the double binary tree is passed up and down; with two nodes only half of the buffer goes up
/// from each.
CollectiveCost Communicator::tree(Protocol protocol, double bytes) const {
    CollectiveCost cost =
        entry(Algorithm::tree, protocol, tree_latency_us(protocol), bytes, tree_bus_gb(protocol, bytes) / 2);
    const std::uint64_t local = placement_.ranks_per_node, passes = placement_.nodes == 2 ? 1 : 2;
    set_load(cost, bytes, passes * local, 2 * placement_.rails * (local - 1));
    return cost;
}

/// The switch reduces: a GPU's link carries the buffer once; NVLSTree joins nodes by trees.
CollectiveCost Communicator::nvls(double bytes) const {
    const Algorithm algorithm = placement_.nodes > 1 ? Algorithm::nvls_tree : Algorithm::nvls;
    const double local = nccl::hop_latency_us(intra_, algorithm, Protocol::simple);
    const double net = nccl::hop_latency_us(nccl::Hardware::net, algorithm, Protocol::simple);
    const double passes = ring_steps(CollectiveKind::all_reduce) / ranks();
    CollectiveCost cost = entry(algorithm, Protocol::simple, local + 2 * log2_floor(placement_.nodes) * net,
                                bytes, nvls_bus_gb(algorithm) / passes);
    const std::uint64_t up_and_down = placement_.nodes == 2 ? 1 : 2;
    set_load(cost, bytes, up_and_down * placement_.ranks_per_node,
             placement_.rails * placement_.ranks_per_node);
    return cost;
}

/// Messages from each rank to each (ncclSend and ncclRecv in one group): of a rank's buffer the share of the
/// other ranks of the node crosses its GPU's link, that of other nodes its NIC.
CollectiveCost Communicator::all_to_all(double bytes) const {
    const std::uint64_t local = placement_.ranks_per_node;
    const nccl::Hardware hardware = placement_.nodes > 1 ? nccl::Hardware::net : intra_;
    CollectiveCost cost = entry(Algorithm::pairwise, Protocol::simple,
                                nccl::base_latency_us(Algorithm::ring, Protocol::simple) +
                                    nccl::hop_latency_us(hardware, Algorithm::ring, Protocol::simple),
                                bytes, 0);
    cost.cap_bytes_per_s = std::max(rates_.intra_node_bytes_per_s, rates_.nic_bytes_per_s) * ranks() /
                           std::max(1.0, ranks() - 1);
    // set_load counts in units of bytes / (rails · local): scaled so that a unit is what one peer gets.
    const auto units = static_cast<double>(placement_.rails * local);
    set_load(cost, bytes * units / ranks(), placement_.ranks - local, local - 1);
    return cost;
}

CollectiveCost Communicator::message(double bytes) const {
    const bool across = placement_.nodes > 1;
    const nccl::Hardware hardware = across ? nccl::Hardware::net : intra_;
    CollectiveCost cost =
        entry(Algorithm::pairwise, Protocol::simple,
              nccl::base_latency_us(Algorithm::ring, Protocol::simple) +
                  nccl::hop_latency_us(hardware, Algorithm::ring, Protocol::simple),
              bytes, (across ? rates_.nic_bytes_per_s : rates_.intra_node_bytes_per_s) / giga);
    const auto units = static_cast<double>(placement_.rails * placement_.ranks_per_node);
    set_load(cost, bytes * units, across ? 1 : 0, across ? 0 : 1);
    cost.overhead_s = overhead_s(CollectiveKind::broadcast, cost);
    return cost;
}

bool allowed(const CollectiveCost& cost, const CollectiveChoice& choice) {
    return (!choice.algorithm || *choice.algorithm == cost.algorithm) &&
           (!choice.protocol || *choice.protocol == cost.protocol);
}

CollectiveCost Communicator::cheapest(CollectiveKind kind, double bytes,
                                      const CollectiveChoice& choice) const {
    if (kind == CollectiveKind::all_to_all) {
        CollectiveCost cost = all_to_all(bytes);
        cost.overhead_s = overhead_s(kind, cost);
        return cost;
    }
    std::vector<CollectiveCost> entries;
    const bool reduces_all = kind == CollectiveKind::all_reduce;
    for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
        if (protocol == Protocol::ll128 && !ll128_) continue;
        entries.push_back(ring(kind, protocol, bytes));
        if (reduces_all) entries.push_back(tree(protocol, bytes));
    }
    if (reduces_all && nvls_) entries.push_back(nvls(bytes));
    std::erase_if(entries, [&](const CollectiveCost& entry) { return !allowed(entry, choice); });
    if (entries.empty())
        throw Error(ErrorCode::not_supported,
                    fmt::format("{} of {} ranks on {} nodes can't run with the forced algorithm and protocol",
                                to_string(kind), placement_.ranks, placement_.nodes),
                    "leave the choice to NCCL");
    const auto estimate = [](const CollectiveCost& c) { return c.latency_s + c.bytes / c.cap_bytes_per_s; };
    CollectiveCost best =
        *std::min_element(entries.begin(), entries.end(),
                          [&](const auto& a, const auto& b) { return estimate(a) < estimate(b); });
    best.overhead_s = overhead_s(kind, best);
    return best;
}

/// The host back end copies through shared memory: every rank moves what a ring would carry over its edge.
CollectiveCost shared_memory_cost(CollectiveKind kind, double bytes, const GroupPlacement& placement,
                                  const LinkRates& rates) {
    const auto n = static_cast<double>(placement.ranks);
    const double passes =
        kind == CollectiveKind::broadcast ? 1 : (kind == CollectiveKind::all_reduce ? 2 : 1) * (n - 1) / n;
    CollectiveCost cost{.algorithm = Algorithm::shared_memory,
                        .latency_s = cost::constants().host_barrier_s.value,
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

}  // namespace

std::string_view to_string(CollectiveAlgorithm algorithm) {
    switch (algorithm) {
        case Algorithm::copy:
            return "copy";
        case Algorithm::ring:
            return "ring";
        case Algorithm::tree:
            return "tree";
        case Algorithm::nvls:
            return "nvls";
        case Algorithm::nvls_tree:
            return "nvls_tree";
        case Algorithm::shared_memory:
            return "shared_memory";
        case Algorithm::pairwise:
            return "pairwise";
    }
    return "?";
}

std::string_view to_string(CollectiveProtocol protocol) {
    switch (protocol) {
        case Protocol::ll:
            return "ll";
        case Protocol::ll128:
            return "ll128";
        case Protocol::simple:
            return "simple";
    }
    return "?";
}

LinkRates link_rates(const ClusterSpec& cluster) {
    return {link_bytes_per_s(cluster) * link_efficiency(cluster),
            cluster.nodes > 1 ? cluster.inter_node.bytes_per_s_per_gpu * network_efficiency(cluster) : 0};
}

CollectiveCost collective_cost(CollectiveKind kind, Bytes bytes, const GroupPlacement& placement,
                               const ClusterSpec& cluster, const CollectiveChoice& choice) {
    const auto size = static_cast<double>(bytes.count());
    if (placement.ranks <= 1 || size == 0) return {.bytes = size};
    GroupPlacement seen = placement;
    // GPUs of several nodes on one NVLink switch are one node to NCCL.
    if (cluster.inter_node.kind == InterNodeKind::nvlink)
        seen = {placement.ranks, 1, placement.ranks, placement.ranks};
    const LinkRates rates = link_rates(cluster);
    require_links(seen, rates, cluster);
    if (cluster.gpu.is_host && seen.nodes == 1) return shared_memory_cost(kind, size, seen, rates);
    return Communicator(seen, cluster).cheapest(kind, size, choice);
}

CollectiveCost message_cost(Bytes bytes, bool across_nodes, const ClusterSpec& cluster) {
    const auto size = static_cast<double>(bytes.count());
    if (size == 0) return {};
    const bool across = across_nodes && cluster.inter_node.kind != InterNodeKind::nvlink;
    const GroupPlacement pair = across ? GroupPlacement{2, 2, 1, 1} : GroupPlacement{2, 1, 2, 2};
    require_links(pair, link_rates(cluster), cluster);
    return Communicator(pair, cluster).message(size);
}

}  // namespace zeroplan
