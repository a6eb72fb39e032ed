#pragma once
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Device bytes of one rank outside the allocator: driver context and communicator buffers.
struct RuntimeMemory {
    Bytes expected, low, high;
    std::vector<Constant> constants;
    friend bool operator==(const RuntimeMemory&, const RuntimeMemory&) = default;
};

/// What a rank of `scenario` has on the device besides its allocations, once the first step has run.
///
/// communicators  NCCL communicators the engine keeps; each owns its channels' buffers
/// source         NCCL 2.28.9: per ring communicator 4 MiB + 6 MiB · channels + 12 MiB · channels inside a
/// node, and
///                NVLS buffers of 2 MiB · 16 channels · ranks in the node on NVSwitch systems from Hopper on
RuntimeMemory runtime_memory(const Scenario& scenario, std::uint64_t communicators);

}  // namespace zeroplan
