#include "zeroplan/runtime_memory.hpp"

#include <algorithm>

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
constexpr std::uint64_t nvls_channels = 16;
// Host processes: library buffers, thread stacks and staging; 5.0 to 5.6 MiB were measured beside 69 to 101
// MiB of data.
constexpr Range host_process_mib{4, 6, 10};

constexpr std::uint64_t mib = 1ULL << 20;

Constant constant(std::string name, std::uint64_t value, std::string unit, std::string source,
                  std::string kind) {
    return {std::move(name), static_cast<double>(value), std::move(unit), std::move(source), std::move(kind)};
}

/// Bytes of one communicator whose ring has `channels` channels inside a node.
std::uint64_t ring_bytes(std::uint64_t channels) {
    return (4 + 6 * channels + 12 * channels) * mib;
}

RuntimeMemory host_runtime() {
    return {
        Bytes{host_process_mib.expected * mib},
        Bytes{host_process_mib.low * mib},
        Bytes{host_process_mib.high * mib},
        {constant("host_process_bytes", host_process_mib.expected * mib, "B",
                  "BLAS buffers, thread stacks and staging of a host rank, measured growth 5.0 to 5.6 MiB",
                  "calibrated constant")}};
}

}  // namespace

RuntimeMemory runtime_memory(const Scenario& scenario, std::uint64_t communicators) {
    const ClusterSpec& cluster = scenario.cluster;
    if (cluster.gpu.is_host) return host_runtime();

    RuntimeMemory memory{
        Bytes{context_mib.expected * mib},
        Bytes{context_mib.low * mib},
        Bytes{context_mib.high * mib},
        {constant("device_context_bytes", context_mib.expected * mib, "B",
                  "read off running systems: about 3 MiB a multiprocessor; interval 300 to 600 MiB",
                  "assumption")}};
    if (scenario.world_size() == 1) return memory;

    const bool pcie = cluster.intra_node == IntraNode::pcie;
    const Range channels = pcie ? pcie_channels : nvlink_channels;
    memory.low += communicators * Bytes{ring_bytes(channels.low)};
    memory.expected += communicators * Bytes{ring_bytes(channels.expected)};
    memory.high += communicators * Bytes{ring_bytes(channels.high)};
    memory.constants.push_back(constant(
        "nccl_channels", channels.expected, "1",
        pcie ? "NCCL over PCIe, interval 2 to 8" : "NCCL over NVLink, interval 16 to 32", "assumption"));
    memory.constants.push_back(constant("nccl_ring_bytes", ring_bytes(channels.expected), "B",
                                        "NCCL 2.28.9 buffers of one communicator: 4 MiB + 18 MiB a channel",
                                        "exact rule"));
    const std::uint64_t node_ranks = std::min(cluster.gpus_per_node, scenario.world_size());
    const bool nvls =
        cluster.intra_node == IntraNode::nvswitch && cluster.gpu.compute_capability >= 90 && node_ranks > 1;
    if (nvls) {
        const Bytes buffers = checked_product(2 * nvls_channels, node_ranks) * Bytes{mib};
        memory.expected += communicators * buffers;
        memory.high += communicators * buffers;
        memory.constants.push_back(constant(
            "nccl_nvls_bytes", buffers.count(), "B",
            "NCCL 2.28.9: 16 NVLS channels of 2 MiB a rank of the node; none if NVLS is off", "exact rule"));
    }
    return memory;
}

}  // namespace zeroplan
