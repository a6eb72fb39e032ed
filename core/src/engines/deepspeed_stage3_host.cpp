#include <algorithm>
#include <utility>

#include "engines/deepspeed_stage3.hpp"
#include "engines/host_copies.hpp"

namespace zeroplan {
namespace {

std::uint64_t master_bytes(const DeepSpeedRank& rank) {
    return bytes_per_element(stage3_master_dtype(rank));
}

TrainingConfig host_training(const DeepSpeedRank& rank) {
    TrainingConfig training = rank.training;
    if (rank.options.sixteen_bit_optimizer_states) training.optimizer_state_dtype = DType::bf16;
    return training;
}

}  // namespace

/// The reduced shards go to their buffer on the host and, as that is what is added to and measured, back; at
/// the end of the step they go wide to the optimizer. All on the stream that has reduced them.
/// source: deepspeed/runtime/zero/stage3.py, partition_grads
void DeepSpeedStage3::send_to_host(Stream stream, std::uint64_t elements) {
    const auto copy = [&](CopyPath path, std::uint64_t element) {
        copy_in_line(builder_, stream,
                     {.path = path,
                      .role = BufferRole::gradients,
                      .owner = flat_unit(rank_.model),
                      .bytes = elements * element,
                      .pinned = rank_.options.offload_optimizer.pin_memory});
    };
    const std::uint64_t narrow = bytes_per_element(rank_.training.gradient_dtype);
    copy(CopyPath::to_host, narrow);
    copy(CopyPath::to_device, narrow);
    if (!last_) return;
    elements = host_part_of_bucket();
    if (elements == 0) return;
    copy(CopyPath::to_host, master_bytes(rank_));
    // OptimizerSwapper.swap_out_gradients
    if (rank_.training.offload_optimizer == OffloadTarget::nvme)
        issue_copy(builder_,
                   {.path = CopyPath::to_nvme,
                    .role = BufferRole::gradients,
                    .owner = flat_unit(rank_.model),
                    .bytes = elements * master_bytes(rank_)},
                   builder_.last(Stream::to_host));
}

bool DeepSpeedStage3::steps_on_host(std::size_t index) const {
    return offloads_optimizer(rank_) && index >= sub_groups_on_device(rank_.training, groups_.size());
}

/// Elements of this rank's shards in the bucket that the host steps.
std::uint64_t DeepSpeedStage3::host_part_of_bucket() const {
    std::uint64_t elements = 0;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        if (!steps_on_host(g)) continue;
        const std::vector<std::uint32_t>& own = groups_[g].parameters;  // ascending
        for (const InBucket& entry : in_bucket_)
            if (std::binary_search(own.begin(), own.end(), entry.parameter))
                elements += shard(entry.parameter);
    }
    return elements;
}

/// The gradients of a sub-group that is stepped on the device beside others on the host are there, wide.
void DeepSpeedStage3::step_resident(std::size_t index) {
    flat_optimizer_step(rank_, builder_, masters_[index], wide_gradients_[index], states_[index],
                        groups_[index].numel);
}

OperationId DeepSpeedStage3::swap(const SubGroup& group, bool in, std::vector<OperationId> waits) {
    const std::uint64_t wide = master_bytes(rank_), tensors = in ? 2U : 1U;  // gradients are only read
    return issue_copy(
        builder_,
        {.path = in ? CopyPath::from_nvme : CopyPath::to_nvme,
         .role = BufferRole::momentum,
         .owner = flat_unit(rank_.model),
         .bytes = tensors * wide * group.numel + host_state_bytes(host_training(rank_), group.numel)},
        std::move(waits));
}

/// The host unscales and clips the gradients first. Where the parameters stay there, it narrows them itself.
OperationId DeepSpeedStage3::step_sub_group_on_host(const SubGroup& group, std::vector<OperationId> waits) {
    const std::uint64_t wide = master_bytes(rank_);
    const std::uint64_t narrow = bytes_per_element(rank_.training.parameter_dtype);
    const std::uint64_t step = host_step_bytes(host_training(rank_), group.numel, wide, wide);
    return builder_.on_stream(Stream::host,
                              HostStep{.unit = flat_unit(rank_.model),
                                       .elements = group.numel,
                                       .bytes = step + group.numel * (2 * wide + wide + narrow)},
                              std::move(waits));
}

/// Narrowed on the host, whatever takes them: the device, the host's own memory, or a drive.
void DeepSpeedStage3::give_new_values(const SubGroup& group, OperationId stepped) {
    if (rank_.training.offload_parameters == OffloadTarget::cpu) return;
    const bool on_device = rank_.training.offload_parameters == OffloadTarget::none;
    const OperationId given =
        issue_copy(builder_,
                   {.path = on_device ? CopyPath::to_device : CopyPath::to_nvme,
                    .role = BufferRole::parameters,
                    .owner = flat_unit(rank_.model),
                    .bytes = group.numel * bytes_per_element(rank_.training.parameter_dtype),
                    .pinned = rank_.options.offload_optimizer.pin_memory},
                   {stepped});
    if (on_device) builder_.hold(Stream::compute, given);
}

/// One sub-group after the other; on drives each is read, stepped and written, and the next one is read
/// meanwhile only with pipeline_read or pipeline_write.
/// source: stage3.py, step; runtime/swap_tensor/pipelined_optimizer_swapper.py
void DeepSpeedStage3::step_on_host() {
    const bool on_nvme = rank_.training.offload_optimizer == OffloadTarget::nvme;
    const DeepSpeedOffload& options = rank_.options.offload_optimizer;
    const bool ahead = options.pipeline_read || options.pipeline_write;
    std::vector<OperationId> read;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        if (!steps_on_host(g)) continue;
        if (on_nvme && read.empty()) read = {swap(groups_[g], true, {})};
        const OperationId stepped = step_sub_group_on_host(groups_[g], std::exchange(read, {}));
        give_new_values(groups_[g], stepped);
        if (!on_nvme) continue;
        if (ahead && g + 1 < groups_.size()) read = {swap(groups_[g + 1], true, {})};
        swap(groups_[g], false, {stepped});
    }
    builder_.wait_for_all();
}

}  // namespace zeroplan
