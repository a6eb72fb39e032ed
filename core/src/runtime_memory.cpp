#include "zeroplan/runtime_memory.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cost/nccl_tables.hpp"
#include "zeroplan/fabric_sites.hpp"

namespace zeroplan {
namespace {

using namespace literals;

struct Range {
    std::uint64_t low, expected, high;
};

// Context sizes read off running systems: 555 MiB with 188 multiprocessors, 107 MiB with 34 (about 3 MiB
// each), so 300 to 600 MiB for the 80 to 148 of data-centre GPUs. Calibration replaces it.
constexpr Range context_mib{300, 450, 600};
// Ring channels NCCL opens: 16 to 32 over NVLink, 2 to 8 over PCIe. NCCL_DEBUG=INFO prints them as "coll
// channels".
constexpr Range nvlink_channels{16, 24, 32};
constexpr Range pcie_channels{2, 4, 8};
// Host processes: library buffers, thread stacks and staging; 5.0 to 5.6 MiB were measured beside 69 to 101
// MiB of data.
constexpr Range host_process_mib{4, 6, 10};

constexpr std::uint64_t mib = 1ULL << 20;

Constant constant(std::string name, std::uint64_t value, std::string unit, std::string source,
                  std::string kind) {
    return {std::move(name), static_cast<double>(value), std::move(unit), std::move(source), std::move(kind)};
}

// Buffers of one channel towards one neighbour, sending and receiving, in steps of 2 MiB: over NVLink or PCIe
// 10 + 2 MiB (p2pRecvSetup, p2pSendSetup); over a network that reaches into the device 10 + 10 MiB (LL128 and
// Simple of what is sent, LL as well of what is received; net.cc sendProxyConnect, recvProxyConnect).
constexpr std::uint64_t neighbour_mib = 12, network_neighbour_mib = 20;
// A tree is a chain inside a node; between nodes its first rank has a parent and two children (trees.cc).
constexpr std::uint64_t chain_neighbours = 2, tree_network_neighbours = 3;

/// Bytes of one communicator whose ring has `channels` channels inside a node.
std::uint64_t ring_bytes(std::uint64_t channels) {
    return (4 + 6 * channels + neighbour_mib * channels) * mib;
}

/// Further bytes of one communicator where every channel's ring enters and leaves the node at this rank.
std::uint64_t network_bytes(std::uint64_t channels) {
    return (network_neighbour_mib - neighbour_mib) * channels * mib;
}

/// Further bytes of one communicator that also runs along trees. Channels enter a node at different ranks.
std::uint64_t tree_bytes(std::uint64_t channels, std::uint64_t node_ranks, bool several_nodes) {
    const std::uint64_t entering = several_nodes ? (channels + node_ranks - 1) / node_ranks : 0;
    return (chain_neighbours * neighbour_mib * channels +
            tree_network_neighbours * network_neighbour_mib * entering) *
           mib;
}

/// A figure of the cluster's own has no interval.
Range calibrated(const Calibration& calibration, const char* name, double unit, const Range& built_in) {
    const auto found = calibration.constants.find(name);
    if (found == calibration.constants.end()) return built_in;
    const auto value = static_cast<std::uint64_t>(found->second / unit + 0.5);
    return {value, value, value};
}

/// Says of the constants that a calibration replaced where they come from now.
void name_calibration(RuntimeMemory& memory, const Calibration& calibration) {
    for (Constant& constant : memory.constants) {
        if (!calibration.constants.contains(constant.name)) continue;
        constant.source = fmt::format("calibration {}", calibration.source);
        constant.kind = "calibrated constant";
    }
}

RuntimeMemory host_runtime(const Calibration& calibration) {
    const Range process = calibrated(
        calibration, "host_process_bytes", 1,
        {host_process_mib.low * mib, host_process_mib.expected * mib, host_process_mib.high * mib});
    return {
        Bytes{process.expected},
        Bytes{process.low},
        Bytes{process.high},
        {constant("host_process_bytes", process.expected, "B",
                  "BLAS buffers, thread stacks and staging of a host rank, measured growth 5.0 to 5.6 MiB",
                  "calibrated constant")}};
}

/// What is there only if NCCL chooses so: it makes the high end, since an estimate errs to the high side.
void add_if_chosen(RuntimeMemory& memory, const Communicators& communicators, const char* name,
                   std::uint64_t bytes, const char* source) {
    if (bytes == 0) return;
    memory.high += communicators.count * Bytes{bytes};
    memory.constants.push_back(constant(name, bytes, "B", source, "assumption"));
}

void add_nvls(RuntimeMemory& memory, std::uint64_t communicators, std::uint64_t node_ranks,
              std::uint64_t channels) {
    const Bytes buffers = checked_product(2 * channels, node_ranks) * Bytes{mib};
    memory.expected += communicators * buffers;
    memory.high += communicators * buffers;
    memory.constants.push_back(constant("nccl_nvls_bytes", buffers.count(), "B",
                                        fmt::format("of each communicator, NCCL 2.28.9: {} NVLS channels of "
                                                    "2 MiB a rank of the node; none if NVLS is off",
                                                    channels),
                                        "exact rule"));
}

void add_rings(RuntimeMemory& memory, const Communicators& communicators, const Range& channels, bool pcie) {
    memory.low += communicators.count * Bytes{ring_bytes(channels.low)};
    memory.expected += communicators.count * Bytes{ring_bytes(channels.expected)};
    memory.high += communicators.count * Bytes{ring_bytes(channels.high)};
    memory.constants.push_back(constant("nccl_communicators", communicators.count, "1",
                                        "those that the engine keeps on a rank; each has its own buffers",
                                        "exact rule"));
    memory.constants.push_back(constant(
        "nccl_channels", channels.expected, "1",
        pcie ? "NCCL over PCIe, interval 2 to 8" : "NCCL over NVLink, interval 16 to 32", "assumption"));
    memory.constants.push_back(constant(
        "nccl_ring_bytes", ring_bytes(channels.expected), "B",
        "of each communicator, by NCCL 2.28.9's rule of 4 MiB + 18 MiB a channel, which is exact, on "
        "the channels assumed above",
        "assumption"));
}

std::uint64_t nvls_channels(const ClusterSpec& cluster, std::uint64_t node_ranks) {
    return static_cast<std::uint64_t>(nccl::nvls_channels(nccl::generation(cluster.gpu.compute_capability),
                                                          nodes_in_use(cluster), node_ranks,
                                                          stated_nic_bytes_per_s(cluster) / 1e9));
}

/// NCCL opens as many as its graph has, where that is known.
Range channels_of(const ClusterSpec& cluster) {
    Range range = cluster.intra_node == IntraNode::pcie ? pcie_channels : nvlink_channels;
    if (const auto& ring = cluster.calibration.ring) {
        const auto count = 2 * static_cast<std::uint64_t>(ring->count);  // each is built twice
        range = {count, count, count};
    }
    return calibrated(cluster.calibration, "nccl_channels", 1, range);
}

RuntimeMemory device_runtime(const Scenario& scenario, const Communicators& communicators) {
    const ClusterSpec& cluster = scenario.cluster;
    const Range context =
        calibrated(cluster.calibration, "device_context_bytes", 1,
                   {context_mib.low * mib, context_mib.expected * mib, context_mib.high * mib});
    RuntimeMemory memory{
        Bytes{context.expected},
        Bytes{context.low},
        Bytes{context.high},
        {constant("device_context_bytes", context.expected, "B",
                  "read off running systems: about 3 MiB a multiprocessor; interval 300 to 600 MiB",
                  "assumption")}};
    if (scenario.world_size() == 1) return memory;

    const bool pcie = cluster.intra_node == IntraNode::pcie;
    const Range channels = channels_of(cluster);
    add_rings(memory, communicators, channels, pcie);
    const std::uint64_t node_ranks = std::min(cluster.gpus_per_node, scenario.world_size());
    const bool nvls =
        cluster.intra_node == IntraNode::nvswitch && cluster.gpu.compute_capability >= 90 && node_ranks > 1;
    if (nvls) add_nvls(memory, communicators.count, node_ranks, nvls_channels(cluster, node_ranks));
    const bool several_nodes = scenario.world_size() > node_ranks;
    if (several_nodes)
        add_if_chosen(
            memory, communicators, "nccl_network_bytes_at_most", network_bytes(channels.high),
            "of each communicator, in the high end only: a rank at which every channel's ring crosses "
            "to another node, 8 MiB more a channel");
    if (communicators.all_reduces)
        add_if_chosen(
            memory, communicators, "nccl_tree_bytes_at_most",
            tree_bytes(channels.high, node_ranks, several_nodes),
            "of each communicator, in the high end only: if NCCL runs all-reduces along trees, 12 MiB "
            "a channel and neighbour in the node, 20 MiB over the network");
    return memory;
}

}  // namespace

std::span<const std::string_view> runtime_constants() {
    static constexpr std::array<std::string_view, 3> names{"device_context_bytes", "nccl_channels",
                                                           "host_process_bytes"};
    return names;
}

RuntimeMemory runtime_memory(const Scenario& scenario, const Communicators& communicators) {
    RuntimeMemory memory = scenario.cluster.gpu.is_host ? host_runtime(scenario.cluster.calibration)
                                                        : device_runtime(scenario, communicators);
    name_calibration(memory, scenario.cluster.calibration);
    return memory;
}

}  // namespace zeroplan
