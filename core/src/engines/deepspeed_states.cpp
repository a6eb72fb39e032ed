#include "engines/deepspeed_states.hpp"

#include "engines/muon.hpp"

namespace zeroplan {
namespace {

/// Muon's and Adam's parameters are groups of their own, each flat and padded for itself.
FlatGroup part_of(const DeepSpeedRank& rank, bool muon) {
    FlatGroup part{.ranks = rank.group.ranks};
    for (const PlacedParameter& placed : rank.group.parameters) {
        const Parameter& parameter = rank.model.parameters[placed.parameter];
        if (trained_by_muon(parameter) != muon) continue;
        part.parameters.push_back({placed.parameter, part.numel});
        part.numel += parameter.numel;
    }
    part.padded_numel = round_up(part.numel, 2 * part.ranks);
    return part;
}

std::vector<OptimizerTensor> momentum_and_moments(std::uint64_t momentum, DType dtype, std::uint64_t adam,
                                                  DType moments) {
    std::vector<OptimizerTensor> states;
    if (momentum > 0) states.push_back({momentum, dtype});
    if (adam > 0) states.insert(states.end(), 2, {adam, moments});
    return states;
}

}  // namespace

MuonPartition muon_partition(const DeepSpeedRank& rank) {
    const FlatGroup muon = part_of(rank, true);
    MuonPartition most{.adam = part_of(rank, false).partition(), .matrices = {}};
    for (std::uint64_t r = 0; r < muon.ranks; ++r) {
        const PartitionShare share = partition_share(muon, rank.model, r);
        if (share.whole_numel <= most.momentum) continue;
        most.momentum = share.whole_numel;
        most.matrices = muon_matrices(rank.model, share.parameters);
    }
    return most;
}

std::vector<OptimizerTensor> flat_states(const DeepSpeedRank& rank, std::uint64_t elements,
                                         const std::vector<std::uint32_t>& parameters) {
    TrainingConfig training = rank.training;
    if (rank.options.sixteen_bit_optimizer_states) training.optimizer_state_dtype = DType::bf16;
    if (training.optimizer != Optimizer::muon) return optimizer_tensors(training, elements, {elements});
    if (training.zero_stage < 3) {
        const MuonPartition partition = muon_partition(rank);
        return momentum_and_moments(partition.momentum, training.gradient_dtype, partition.adam,
                                    training.optimizer_state_dtype);
    }
    // stage3.py, _create_momentum_buffer
    std::uint64_t matrices = 0;
    for (const std::uint32_t p : parameters)
        if (trained_by_muon(rank.model.parameters[p]))
            matrices += stage3_shard_numel(rank.model.parameters[p].numel, rank.ranks);
    return momentum_and_moments(matrices, training.reduce_dtype, elements - matrices,
                                training.optimizer_state_dtype);
}

}  // namespace zeroplan
