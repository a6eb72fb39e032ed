#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Device bytes of one rank outside the allocator: driver context and communicator buffers.
struct RuntimeMemory {
    Bytes expected, low, high;
    std::vector<Constant> constants;
    friend bool operator==(const RuntimeMemory&, const RuntimeMemory&) = default;
};

/// What the ranks of a job communicate with.
struct Communicators {
    std::uint64_t count = 1;   ///< NCCL communicators that a rank keeps; each owns its channels' buffers
    bool all_reduces = false;  ///< the only collective that NCCL may run along trees, too
};

/// What a rank of `scenario` has on the device besides its allocations, once the first step has run.
///
/// source  NCCL 2.28.9 (init.cc computeBuffSizes, transport/p2p.cc, transport/net.cc, transport/nvls.cc): per
///         ring communicator 4 MiB + 6 MiB · channels + 12 MiB · channels inside a node, and NVLS buffers of
///         2 MiB · 16 channels · ranks in the node on NVSwitch systems from Hopper on. The high end has the
///         buffers of trees and of the network besides, which depend on what NCCL chooses.
RuntimeMemory runtime_memory(const Scenario& scenario, const Communicators& communicators);

/// Names of the constants that a calibration may replace.
std::span<const std::string_view> runtime_constants();

}  // namespace zeroplan
