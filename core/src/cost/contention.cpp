#include "zeroplan/contention.hpp"

#include <algorithm>

#include "cost/constants.hpp"
#include "cost/largest_board.hpp"

namespace zeroplan {
namespace {

double longer(double taken) {
    constexpr double most = 0.9;
    return 1 / (1 - std::clamp(taken, 0.0, most));
}

}  // namespace

GpuCapacity gpu_capacity(const ClusterSpec& cluster) {
    const GpuSpec& gpu = cluster.gpu;
    if (gpu.is_host) return {};
    const cost::Constants& c = cost::constants(cluster.calibration);
    const double multiprocessors = gpu.multiprocessors > 0
                                       ? gpu.multiprocessors
                                       : cost::largest_board(gpu.compute_capability).multiprocessors;
    return {.blocks = c.blocks_per_multiprocessor.value * multiprocessors,
            .memory_bytes_per_s = gpu.hbm_bytes_per_s * c.memory_efficiency.value};
}

GpuShares shares_of(const CollectiveCost& cost, double seconds, const GpuCapacity& gpu) {
    if (!(gpu.blocks > 0) || !(seconds > 0)) return {};
    const double memory = cost.memory_bytes / seconds / gpu.memory_bytes_per_s;
    const bool crosses_nodes = cost.nic_weight > 0;
    return {cost.channels / gpu.blocks, crosses_nodes ? 0 : memory, crosses_nodes ? memory : 0};
}

double slow_down(const WorkTime& work, const GpuShares& taken) {
    if (!(work.seconds > 0)) return 1;
    const double more = work.multiprocessor_s * (longer(taken.multiprocessors) - 1) +
                        work.memory_s * (longer(taken.memory()) - 1);
    return 1 + more / work.seconds;
}

}  // namespace zeroplan
