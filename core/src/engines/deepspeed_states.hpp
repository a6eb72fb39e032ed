#pragma once
#include <vector>

#include "engines/deepspeed_rank.hpp"
#include "engines/torch_optimizer.hpp"

namespace zeroplan {

/// What the optimizer keeps on one rank for `elements` master weights, those of `parameters` (indices) at
/// stage 3.
std::vector<OptimizerTensor> flat_states(const DeepSpeedRank& rank, std::uint64_t elements,
                                         const std::vector<std::uint32_t>& parameters);

/// Stages 1 and 2: Muon's matrices that a rank's partition overlaps, of the rank that overlaps the most,
/// which it keeps the momentum of and orthogonalises whole. source: stage_1_and_2.py, get_flat_partition
struct MuonPartition {
    std::uint64_t momentum = 0;  ///< elements
    std::uint64_t adam = 0;      ///< elements of the partition of what Muon doesn't train
    std::vector<Orthogonalised> matrices;
};
MuonPartition muon_partition(const DeepSpeedRank& rank);

}  // namespace zeroplan
