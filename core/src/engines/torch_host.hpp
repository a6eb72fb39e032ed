#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "zeroplan/plan.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// PyTorch's host allocator rounds page-locked blocks up to a power of two (c10, CachingHostAllocator).
Bytes pinned_block(std::uint64_t bytes);

/// Page-locked blocks of one process: a block that is given back stays page-locked, and serves the next
/// request of its size class. source: aten/src/ATen/core/CachingHostAllocator.h (allocate, free)
class PinnedBlocks {
public:
    void allocate(std::uint64_t bytes);
    void free(std::uint64_t bytes);
    /// All that was ever page-locked.
    Bytes total() const { return total_; }

private:
    std::map<Bytes, std::uint64_t> free_;  ///< how many, by size
    Bytes total_;
};

/// A tensor of one rank that FSDP keeps on the host, with its gradient where it is trained.
struct OffloadedShard {
    std::uint64_t bytes = 0, gradient_bytes = 0;  ///< gradient_bytes 0: frozen
};

/// Host memory of one FSDP rank: shards page-locked from the start and gradients from the first backward on
/// (offload_parameters), or a page-locked copy of what the host steps and of its gradients once the optimizer
/// is there (offload_optimizer alone); optimizer states from the first step on. source:
/// torch/distributed/fsdp/_flat_param.py (_cpu_grad), _fully_shard/_fsdp_param.py (CPUOffloadPolicy),
/// torchao/optim/cpu_offload.py (CPUOffloadOptimizer.__init__)
HostPhases fsdp_host(const TrainingConfig& training, const std::vector<OffloadedShard>& shards,
                     std::uint64_t state_bytes);

/// The same of a rank whose module is made in host memory, where PyTorch makes modules unless told otherwise
/// (torch.get_default_device), and moved from there to the device.
HostPhases module_host(const TrainingConfig& training, std::uint64_t module_bytes,
                       const std::vector<OffloadedShard>& trained, std::uint64_t state_bytes);

}  // namespace zeroplan
