#pragma once
#include "cost/nccl_tables.hpp"
#include "zeroplan/collective_cost.hpp"

namespace zeroplan::nccl {

/// Channels and the speed of each that NCCL's graph search ends with: the most that the links carry.
struct Channels {
    double count = 0, gb_per_s = 0;
    double bus_gb_per_s() const { return count * gb_per_s; }
};
/// source: graph/search.cc, graph/connect.cc (NCCL 2.30)
Channels find_channels(const GroupPlacement& placement, Generation gpu, const LinkRates& rates);

}  // namespace zeroplan::nccl
