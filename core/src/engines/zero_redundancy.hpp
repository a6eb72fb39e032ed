#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/model_spec.hpp"

namespace zeroplan {

/// The rank that ZeroRedundancyOptimizer gives each parameter to, by parameter index (tied ones follow their
/// owner; frozen ones are given to nobody: `ranks`). Whole parameters, largest first (stable), each to the
/// rank with the fewest elements so far, the lowest of equals. source:
/// torch/distributed/optim/zero_redundancy_optimizer.py, _partition_parameters
std::vector<std::uint64_t> zero_redundancy_owners(const ModelSpec& model, std::uint64_t ranks);

/// Ranks by what they own, equal ones together, the lowest first: ranks that own the same sizes do the same
/// to the byte.
std::vector<std::vector<std::uint64_t>> zero_redundancy_groups(const ModelSpec& model,
                                                               const std::vector<std::uint64_t>& owners,
                                                               std::uint64_t ranks);

}  // namespace zeroplan
