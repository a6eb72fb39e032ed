#include <algorithm>
#include <string>

#include "cost/constants.hpp"
#include "zeroplan/collective_cost.hpp"

namespace zeroplan {
namespace {

std::uint64_t local_ranks(const ClusterSpec& cluster) {
    return std::min(cluster.gpus_used, cluster.gpus_per_node);
}

/// A PCIe card whose catalogue link is PCIe, joined to one other by NVLink bridges.
bool is_bridged_pair(const ClusterSpec& cluster) {
    return cluster.intra_node == IntraNode::nvlink_pairs && cluster.gpu.link.starts_with("pcie") &&
           local_ranks(cluster) <= 2;
}

/// NVLink that joins two GPUs alone: a ring over more of them is bound by PCIe between the pairs. The pair's
/// own NVLink isn't modelled beside it.
bool crosses_pairs(const ClusterSpec& cluster) {
    return cluster.intra_node == IntraNode::nvlink_pairs && cluster.gpu.link.starts_with("nvlink") &&
           local_ranks(cluster) > 2;
}

double link_bytes_per_s(const ClusterSpec& cluster) {
    if (crosses_pairs(cluster)) return cluster.host.pcie_bytes_per_s;
    if (!is_bridged_pair(cluster)) return cluster.gpu.link_bytes_per_s;
    const cost::Constants& c = cost::constants(cluster.calibration);
    return (cluster.gpu.compute_capability == 86 ? c.small_bridge_bytes_per_s : c.bridge_bytes_per_s).value;
}

double network_efficiency(const ClusterSpec& cluster) {
    return cluster.inter_node.kind == InterNodeKind::omni_path
               ? cost::constants(cluster.calibration).omni_path_efficiency.value
               : 1;
}

double link_efficiency(const ClusterSpec& cluster) {
    const cost::Constants& c = cost::constants(cluster.calibration);
    const std::string& link = cluster.gpu.link;
    if (cluster.gpu.is_host) return 1;
    if (is_bridged_pair(cluster)) return c.nvlink4_efficiency.value;
    if (crosses_pairs(cluster)) return c.pcie_efficiency.value;
    if (link == "nvlink5") return c.nvlink5_efficiency.value;
    if (link == "nvlink4") return c.nvlink4_efficiency.value;
    if (link == "nvlink3") return c.nvlink3_efficiency.value;
    if (link.starts_with("nvlink")) return c.nvlink2_efficiency.value;
    if (link == "xgmi") return c.xgmi_efficiency.value;
    return c.pcie_efficiency.value *
           (cluster.intra_node == IntraNode::pcie ? c.pcie_staging_efficiency.value : 1);
}

}  // namespace

LinkRates link_rates(const ClusterSpec& cluster) {
    const cost::Constants& c = cost::constants(cluster.calibration);
    return {link_bytes_per_s(cluster) * link_efficiency(cluster),
            cluster.nodes > 1 ? cluster.inter_node.bytes_per_s_per_gpu * network_efficiency(cluster) : 0,
            c.local_payload.value, c.network_payload.value};
}

}  // namespace zeroplan
