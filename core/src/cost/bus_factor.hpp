#pragma once
#include <cstdint>

#include "zeroplan/collective_kind.hpp"

namespace zeroplan {

/// What busbw is of algbw = bytes / time, of a collective over `ranks`: 2 (n - 1) / n of an all-reduce,
/// (n - 1) / n of an all-gather, a reduce-scatter and an all-to-all, 1 of a broadcast. 0 of one rank alone.
/// source: NVIDIA/nccl-tests doc/PERFORMANCE.md
double bus_factor(CollectiveKind kind, std::uint64_t ranks);

}  // namespace zeroplan
