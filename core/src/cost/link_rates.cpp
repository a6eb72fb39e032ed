#include <algorithm>
#include <string>

#include "cost/constants.hpp"
#include "zeroplan/collective_cost.hpp"

namespace zeroplan {
namespace {

double nvlink_efficiency(const std::string& link, const cost::Constants& c) {
    if (link == "nvlink5") return c.nvlink5_efficiency.value;
    if (link == "nvlink4") return c.nvlink4_efficiency.value;
    if (link == "nvlink3") return c.nvlink3_efficiency.value;
    return c.nvlink2_efficiency.value;
}

double nvlink_bytes_per_s(const GpuSpec& gpu, const cost::Constants& c) {
    return gpu.link_bytes_per_s * nvlink_efficiency(gpu.link, c);
}

/// Between the two cards of a pair: of PCIe cards what bridges carry, else the NVLinks that join them.
double bridge_bytes_per_s(const GpuSpec& gpu, const cost::Constants& c) {
    if (gpu.link.starts_with("nvlink")) return nvlink_bytes_per_s(gpu, c);
    const bool small = gpu.compute_capability == 86;
    return (small ? c.small_bridge_bytes_per_s : c.bridge_bytes_per_s).value * c.nvlink4_efficiency.value;
}

/// Between the pairs there is PCIe, also of GPUs whose catalogue names their NVLinks.
double bus_bytes_per_s(const ClusterSpec& cluster, const cost::Constants& c) {
    const bool is_pcie = cluster.gpu.link.starts_with("pcie");
    return (is_pcie ? cluster.gpu.link_bytes_per_s : cluster.host.pcie_bytes_per_s) * c.pcie_efficiency.value;
}

double network_efficiency(const ClusterSpec& cluster) {
    return cluster.inter_node.kind == InterNodeKind::omni_path
               ? cost::constants(cluster.calibration).omni_path_efficiency.value
               : 1;
}

double intra_node_bytes_per_s(const ClusterSpec& cluster, const cost::Constants& c) {
    const GpuSpec& gpu = cluster.gpu;
    if (gpu.is_host) return gpu.link_bytes_per_s;
    if (cluster.intra_node == IntraNode::nvlink_pairs) return bus_bytes_per_s(cluster, c);
    if (gpu.link.starts_with("nvlink")) return nvlink_bytes_per_s(gpu, c);
    if (gpu.link == "xgmi") return gpu.link_bytes_per_s * c.xgmi_efficiency.value;
    return gpu.link_bytes_per_s * c.pcie_efficiency.value *
           (cluster.intra_node == IntraNode::pcie ? c.pcie_staging_efficiency.value : 1);
}

}  // namespace

std::string intra_node_link_name(const ClusterSpec& cluster) {
    const std::string& link = cluster.gpu.link;
    if (cluster.intra_node == IntraNode::nvlink_pairs && link.starts_with("nvlink")) return "pcie";
    return link.empty() ? "intra-node link" : link;
}

std::uint64_t nics_in_use(const ClusterSpec& cluster) {
    const std::uint64_t stated = cluster.inter_node.nics_per_node;
    return stated > 0 ? std::min(stated, cluster.gpus_per_node) : cluster.gpus_per_node;
}

double stated_nic_bytes_per_s(const ClusterSpec& cluster) {
    return cluster.inter_node.bytes_per_s_per_gpu * static_cast<double>(cluster.gpus_per_node) /
           static_cast<double>(nics_in_use(cluster));
}

LinkRates link_rates(const ClusterSpec& cluster) {
    const cost::Constants& c = cost::constants(cluster.calibration);
    const bool pairs = cluster.intra_node == IntraNode::nvlink_pairs && !cluster.gpu.is_host;
    return {.intra_node_bytes_per_s = intra_node_bytes_per_s(cluster, c),
            .bridge_bytes_per_s = pairs ? bridge_bytes_per_s(cluster.gpu, c) : 0,
            .nic_bytes_per_s =
                cluster.nodes > 1 ? cluster.inter_node.bytes_per_s_per_gpu * network_efficiency(cluster) : 0,
            .local_share = c.local_payload.value,
            .network_share = c.network_payload.value};
}

}  // namespace zeroplan
