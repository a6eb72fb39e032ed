#pragma once
#include <algorithm>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/collective_cost.hpp"

namespace zeroplan {

/// How long work on a GPU takes alone, and how much of that ends sooner with more multiprocessors or with a
/// faster memory; the rest, starts of kernels, with neither.
struct WorkTime {
    double seconds = 0, multiprocessor_s = 0, memory_s = 0;

    WorkTime& operator+=(const WorkTime& more) {
        seconds += more.seconds;
        multiprocessor_s += more.multiprocessor_s;
        memory_s += more.memory_s;
        return *this;
    }
    WorkTime& operator/=(double speed) {
        seconds /= speed;
        multiprocessor_s /= speed;
        memory_s /= speed;
        return *this;
    }
    friend bool operator==(const WorkTime&, const WorkTime&) = default;
};

/// Shares of a GPU that work cannot have.
struct GpuShares {
    double multiprocessors = 0;
    double local_memory = 0, network_memory = 0;  ///< of its rate: by what stays in a node, and what doesn't

    double memory() const { return local_memory + network_memory; }
    /// Of collectives that run at the same time: each has its thread blocks, but those of a kind share the
    /// GPU's link or NIC, which carries no more for two than for the faster one.
    void add(const GpuShares& other) {
        multiprocessors += other.multiprocessors;
        local_memory = std::max(local_memory, other.local_memory);
        network_memory = std::max(network_memory, other.network_memory);
    }
    friend bool operator==(const GpuShares&, const GpuShares&) = default;
};

/// What a GPU has to share out.
struct GpuCapacity {
    double blocks = 0;              ///< thread blocks of collectives that fill its multiprocessors; 0: no GPU
    double memory_bytes_per_s = 0;  ///< that kernels reach
    friend bool operator==(const GpuCapacity&, const GpuCapacity&) = default;
};
GpuCapacity gpu_capacity(const ClusterSpec& cluster);

/// What a collective takes of each of its GPUs while it runs, in `seconds`: a multiprocessor for each of its
/// thread blocks, which leave no registers to anybody else, and the memory's rate for what it moves. sources:
/// NVIDIA/nccl#689; arXiv 2507.03114 finds work 18.9 % slower in the mean, 40 % at most, beside collectives
/// (A100, H100, MI250).
GpuShares shares_of(const CollectiveCost& cost, double seconds, const GpuCapacity& gpu);

/// How many times as long `work` takes while others have `taken`. One share in ten is never taken: what there
/// is more of waits.
double slow_down(const WorkTime& work, const GpuShares& taken);

}  // namespace zeroplan
