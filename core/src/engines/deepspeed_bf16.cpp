#include "engines/deepspeed_bf16.hpp"

#include <algorithm>

namespace zeroplan {

DeepSpeedBf16::DeepSpeedBf16(const DeepSpeedRank& rank, ProgramBuilder& builder)
    : rank_(rank),
      builder_(builder),
      parameters_(rank, builder),
      gradients_(rank.model.parameters.size(), no_buffer) {}

void DeepSpeedBf16::init() {
    parameters_.flatten(1);
    const std::uint64_t partition = rank_.group.partition();
    const BufferId clone = builder_.allocate(flat_buffer(rank_, BufferRole::workspace, Category::temporaries,
                                                         rank_.training.parameter_dtype, partition));
    master_ = builder_.allocate(
        flat_buffer(rank_, BufferRole::master_weights, Category::master_weights, DType::fp32, partition));
    builder_.free(clone);
    accumulated_ = builder_.allocate(flat_buffer(rank_, BufferRole::gradients, Category::gradients,
                                                 rank_.training.gradient_dtype, rank_.group.padded_numel));
    states_ = declare_flat_states(rank_, builder_, partition);
    // initialize_optimizer_states: a step on the partition's gradients, which are there already.
    for (const BufferId state : states_) builder_.allocate_again(state);
    if (!keeps_low_precision_gradients()) return;
    for (const PlacedParameter& placed : rank_.group.parameters)
        gradients_[placed.parameter] =
            builder_.allocate({.role = BufferRole::gradients,
                               .category = Category::gradients,
                               .dtype = rank_.training.parameter_dtype,
                               .owner = placed.parameter,
                               .elements = rank_.model.parameters[placed.parameter].numel});
}

void DeepSpeedBf16::add_to_accumulated(std::uint32_t p, BufferId gradient) {
    builder_.on_stream(Stream::compute,
                       Accumulate{.from = {gradient}, .to = {accumulated_}, .unit = p, .always_add = true});
}

void DeepSpeedBf16::gradient_ready(std::uint32_t p, BufferId gradient) {
    if (keeps_low_precision_gradients()) {
        builder_.on_stream(Stream::compute, Accumulate{.from = {gradient}, .to = {gradients_[p]}, .unit = p});
        builder_.free(gradient);
        return;
    }
    if (rank_.options.immediate_grad_update) {
        add_to_accumulated(p, gradient);
        builder_.free(gradient);
        return;
    }
    gradients_[p] = gradient;
}

/// update_hp_grads: after the backward, one parameter after another. A pipeline's tied gradients come first.
/// source: deepspeed/runtime/pipe/schedule.py, TrainSchedule; pipe/engine.py, _exec_reduce_tied_grads
void DeepSpeedBf16::end_backward(bool last) {
    for (std::uint32_t p = 0; p < gradients_.size(); ++p) {
        if (gradients_[p] == no_buffer) continue;
        add_to_accumulated(p, gradients_[p]);
        if (keeps_low_precision_gradients()) continue;
        builder_.free(gradients_[p]);
        gradients_[p] = no_buffer;
    }
    if (!last) return;
    if (rank_.tied_copy)
        all_reduce_tied_gradient(builder_, Stream::compute,
                                 tied_gradient(rank_, accumulated_, rank_.training.gradient_dtype));
    builder_.on_stream(Stream::compute, Collective{.kind = CollectiveKind::all_reduce,
                                                   .group = GroupKind::shard_group,
                                                   .send = {accumulated_},
                                                   .receive = {accumulated_},
                                                   .dtype = rank_.training.gradient_dtype,
                                                   .elements = rank_.group.padded_numel,
                                                   .unit = flat_unit(rank_.model)});
}

OperationId DeepSpeedBf16::step() {
    const OperationId position = builder_.next();
    flat_optimizer_step(rank_, builder_, master_, accumulated_, states_, rank_.group.partition());
    gather_partitions(rank_, builder_, parameters_.flat());
    return position;
}

}  // namespace zeroplan
