#include "engines/deepspeed_host.hpp"

#include <algorithm>

#include "engines/deepspeed_partitioned.hpp"
#include "engines/deepspeed_stage3.hpp"
#include "engines/torch_host.hpp"
#include "engines/torch_optimizer.hpp"

namespace zeroplan {
namespace {

class HostLedger {
public:
    explicit HostLedger(bool pin) : pin_(pin) {}
    void block(std::uint64_t elements, std::uint64_t element_bytes) {
        const std::uint64_t bytes = checked_product(elements, element_bytes);
        if (pin_)
            memory_.pinned += pinned_block(bytes);
        else
            memory_.pageable += Bytes{bytes};
    }
    void pageable(std::uint64_t elements, std::uint64_t element_bytes) {
        memory_.pageable += Bytes{checked_product(elements, element_bytes)};
    }
    const HostMemory& memory() const { return memory_; }

private:
    bool pin_;
    HostMemory memory_;
};

/// Moments are made by the optimizer itself, not page-locked.
void add_states(HostLedger& ledger, const DeepSpeedRank& rank, std::uint64_t elements) {
    TrainingConfig training = rank.training;
    training.optimizer_implementation =
        OptimizerImplementation::for_loop;  // the step count is a number there
    if (rank.options.sixteen_bit_optimizer_states) training.optimizer_state_dtype = DType::bf16;
    for (const OptimizerTensor& tensor : optimizer_tensors(training, elements, {elements}))
        ledger.pageable(tensor.elements, bytes_per_element(tensor.dtype));
}

/// Stages 1 and 2: master partition, its gradients, the 16-bit partition, and one buffer as large as the
/// largest parameter; with accumulation a buffer for every whole parameter that the partition overlaps.
HostMemory partition_on_host(const DeepSpeedRank& rank, bool with_states) {
    HostLedger ledger(rank.options.offload_optimizer.pin_memory);
    const std::uint64_t partition = rank.group.partition();
    const std::uint64_t narrow = bytes_per_element(rank.training.parameter_dtype);
    const std::uint64_t wide = bytes_per_element(partitioned_master_dtype(rank));
    ledger.block(partition, wide);
    ledger.block(partition, wide);
    ledger.block(partition, narrow);
    std::uint64_t largest = 0;
    for (const PlacedParameter& placed : rank.group.parameters)
        largest = std::max(largest, rank.model.parameters[placed.parameter].numel);
    ledger.block(largest, narrow);
    if (rank.training.gradient_accumulation_steps > 1)
        for (const std::uint32_t p : rank.share.parameters)
            ledger.block(rank.model.parameters[p].numel, narrow);
    if (with_states) add_states(ledger, rank, partition);
    return ledger.memory();
}

void add_optimizer_of_stage3(HostLedger& ledger, const DeepSpeedRank& rank,
                             const std::vector<SubGroup>& groups, bool with_states) {
    const bool on_nvme = rank.training.offload_optimizer == OffloadTarget::nvme;
    std::uint64_t largest = 0, all = 0;
    const std::size_t first = sub_groups_on_device(rank.training, groups.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const SubGroup& group = groups[g];
        largest = std::max(largest, group.numel);
        all += group.numel;
        if (on_nvme || g < first) continue;
        const std::uint64_t wide = bytes_per_element(stage3_master_dtype(rank));
        ledger.block(group.numel, wide);
        ledger.block(group.numel, wide);
        if (with_states) add_states(ledger, rank, group.numel);
    }
    ledger.block(all, bytes_per_element(rank.training.gradient_dtype));
    if (!on_nvme) return;
    const DeepSpeedOffload& offload = rank.options.offload_optimizer;
    const std::uint64_t overlap = 1 + (offload.pipeline_read ? 1U : 0U) + (offload.pipeline_write ? 1U : 0U);
    for (std::uint64_t b = 0; b < offload.buffer_count * std::min<std::uint64_t>(overlap, 2); ++b)
        ledger.block(largest, bytes_per_element(stage3_master_dtype(rank)));
}

void add_parameters_of_stage3(HostLedger& ledger, const DeepSpeedRank& rank,
                              const std::vector<SubGroup>& groups) {
    const std::uint64_t narrow = bytes_per_element(rank.training.parameter_dtype);
    std::uint64_t all = 0;
    for (const SubGroup& group : groups) all += group.numel;
    const DeepSpeedOffload& offload = rank.options.offload_parameters;
    if (rank.training.offload_parameters == OffloadTarget::cpu) return ledger.block(all, narrow);
    // AsyncPartitionedParameterSwapper: each buffer is a multiple of numel_alignment = 1024 ·
    // intra_op_parallelism.
    const std::uint64_t aligned = round_up(offload.buffer_size, 1024 * rank.options.aio_threads);
    ledger.block(offload.buffer_count * aligned, narrow);
    ledger.block(std::min(all, offload.max_in_cpu), narrow);
}

HostMemory stage3_on_host(const DeepSpeedRank& rank, bool with_states) {
    const std::vector<SubGroup> groups = sub_groups(rank.model, rank.ranks, rank.options.sub_group_size);
    HostLedger optimizer(rank.options.offload_optimizer.pin_memory);
    HostLedger parameters(rank.options.offload_parameters.pin_memory);
    if (offloads_optimizer(rank)) add_optimizer_of_stage3(optimizer, rank, groups, with_states);
    if (rank.training.offload_parameters != OffloadTarget::none)
        add_parameters_of_stage3(parameters, rank, groups);
    return {optimizer.memory().pinned + parameters.memory().pinned,
            optimizer.memory().pageable + parameters.memory().pageable};
}

HostMemory training_on_host(const DeepSpeedRank& rank, bool with_states) {
    if (rank.training.zero_stage == 3) return stage3_on_host(rank, with_states);
    if (rank.training.zero_stage >= 1 && offloads_optimizer(rank))
        return partition_on_host(rank, with_states);
    return {};
}

}  // namespace

HostPhases deepspeed_host(const DeepSpeedRank& rank, bool loads_on_host) {
    HostPhases phases;
    const auto at = [&](Phase phase) -> HostMemory& { return phases[static_cast<std::size_t>(phase)]; };
    const std::uint64_t model =
        rank.model.parameter_count() * bytes_per_element(rank.training.parameter_dtype);
    // Every process builds the model before it moves to its device.
    if (loads_on_host) at(Phase::load).pageable = Bytes{model};
    at(Phase::init) = training_on_host(rank, rank.options.rules.states_at_init);
    at(Phase::first_step) = at(Phase::steady_step) = at(Phase::save) = training_on_host(rank, true);
    return phases;
}

}  // namespace zeroplan
