#include <algorithm>

#include <fmt/format.h>

#include "cost/constants.hpp"
#include "zeroplan/cost_model.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan {
namespace {

double require(double rate, const char* key) {
    if (rate > 0) return rate;
    throw Error(ErrorCode::invalid_input,
                fmt::format("what is offloaded takes time, but the host's {} is {:g}", key, rate),
                "give the rate, or offload nothing", {"", fmt::format("/cluster/host/{}", key)});
}

}  // namespace

/// The ranks of a node copy and step at the same time: each has its part of the memory, the cores, the drive.
void CostModel::set_offload_rates(const ClusterSpec& cluster, double scale) {
    const cost::Constants& c = *constants_;
    const auto ranks =
        static_cast<double>(std::max<std::uint64_t>(1, std::min(cluster.gpus_per_node, cluster.gpus_used)));
    const double memory = cluster.host.dram_bytes_per_s / ranks;
    const double cores = static_cast<double>(cluster.host.cores) * c.host_core_bytes_per_s.value / ranks;
    const double link = rates_.upload_bytes_per_s;
    const double share = memory * c.host_memory_efficiency.value;
    rates_.pinned_bytes_per_s = (share > 0 ? std::min(link, share) : link) / scale;
    rates_.pageable_bytes_per_s = rates_.pinned_bytes_per_s * c.pageable_share.value;
    rates_.nvme_bytes_per_s = cluster.host.nvme_bytes_per_s / ranks / scale;
    const double step = memory * c.host_step_efficiency.value;
    rates_.host_step_bytes_per_s = (cores > 0 ? std::min(step, cores) : step) / scale;
}

double CostModel::seconds(const HostCopy& copy) const {
    const auto bytes = static_cast<double>(copy.bytes);
    if (copy.path == CopyPath::to_nvme || copy.path == CopyPath::from_nvme)
        return bytes / require(rates_.nvme_bytes_per_s, "nvme_bytes_per_second");
    const double rate = copy.pinned ? rates_.pinned_bytes_per_s : rates_.pageable_bytes_per_s;
    return bytes / require(rate, "pcie_bytes_per_second");
}

double CostModel::seconds(const HostStep& step) const {
    const double rate = require(rates_.host_step_bytes_per_s, "dram_bytes_per_second");
    return static_cast<double>(step.bytes) / rate * (step.fused ? 1 : constants_->unfused_host_step.value);
}

}  // namespace zeroplan
