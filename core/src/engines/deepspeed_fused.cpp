#include "engines/deepspeed_fused.hpp"

namespace zeroplan {
namespace {

/// MEMORY_OPT_ALLREDUCE_SIZE: elements after which gathered gradients are all-reduced.
constexpr std::uint64_t all_reduce_bucket = 500'000'000;

}  // namespace

DeepSpeedFused::DeepSpeedFused(const DeepSpeedRank& rank, ProgramBuilder& builder, bool sixteen_bit)
    : rank_(rank),
      builder_(builder),
      sixteen_bit_(sixteen_bit),
      parameters_(rank, builder),
      gradients_(rank.model.parameters.size(), no_buffer) {}

void DeepSpeedFused::init() {
    if (!sixteen_bit_) {
        lazy_states_ = states_ = declare_flat_states(rank_, builder_, rank_.group.numel);
        return;
    }
    parameters_.flatten(1);
    const std::uint64_t numel = rank_.group.padded_numel;
    const BufferId clone = builder_.allocate(flat_buffer(rank_, BufferRole::workspace, Category::temporaries,
                                                         rank_.training.parameter_dtype, numel));
    master_ = builder_.allocate(
        flat_buffer(rank_, BufferRole::master_weights, Category::master_weights, DType::fp32, numel));
    builder_.free(clone);
    // initialize_optimizer_states: a step on zero gradients.
    const BufferId zeros =
        builder_.allocate(flat_buffer(rank_, BufferRole::gradients, Category::gradients, DType::fp32, numel));
    states_ = declare_flat_states(rank_, builder_, numel);
    for (const BufferId state : states_) builder_.allocate_again(state);
    builder_.free(zeros);
}

void DeepSpeedFused::gradient_ready(std::uint32_t p, BufferId gradient) {
    if (gradients_[p] == no_buffer) {
        gradients_[p] = gradient;
        return;
    }
    builder_.on_stream(Stream::compute,
                       Accumulate{.from = {gradient}, .to = {gradients_[p]}, .unit = p, .always_add = true});
    builder_.free(gradient);
}

/// A pipeline's tied gradients come first. source: deepspeed/runtime/pipe/engine.py, _exec_reduce_tied_grads
void DeepSpeedFused::end_backward(bool last) {
    if (!last) return;
    if (rank_.tied_copy)
        all_reduce_tied_gradient(
            builder_, Stream::compute,
            tied_gradient(rank_, gradients_[*rank_.tied_copy], rank_.training.parameter_dtype));
    all_reduce_in_buckets();
}

/// Gradients are joined in a flat tensor, reduced there and copied back.
void DeepSpeedFused::all_reduce_in_buckets() {
    std::uint64_t elements = 0;
    for (const PlacedParameter& placed : rank_.group.parameters) {
        elements += rank_.model.parameters[placed.parameter].numel;
        if (elements <= all_reduce_bucket) continue;
        all_reduce(elements);
        elements = 0;
    }
    if (elements > 0) all_reduce(elements);
}

void DeepSpeedFused::all_reduce(std::uint64_t elements) {
    const BufferId joined =
        builder_.allocate(flat_buffer(rank_, BufferRole::gradient_bucket, Category::communication_buffers,
                                      rank_.training.gradient_dtype, elements));
    builder_.on_stream(Stream::compute, Collective{.kind = CollectiveKind::all_reduce,
                                                   .group = GroupKind::replica_group,
                                                   .send = {joined},
                                                   .receive = {joined},
                                                   .dtype = rank_.training.reduce_dtype,
                                                   .elements = elements,
                                                   .unit = flat_unit(rank_.model)});
    builder_.free(joined);
}

OperationId DeepSpeedFused::step() {
    if (!sixteen_bit_) return step_fp32_parameters();
    // Every gradient is widened before they are joined: both lists live at once.
    std::vector<BufferId> widened;
    for (const PlacedParameter& placed : rank_.group.parameters) {
        if (gradients_[placed.parameter] == no_buffer) continue;
        Buffer buffer = builder_.buffer(gradients_[placed.parameter]);
        buffer.dtype = DType::fp32;
        widened.push_back(builder_.allocate(buffer));
    }
    const BufferId joined = builder_.allocate(flat_buffer(rank_, BufferRole::gradients, Category::gradients,
                                                          DType::fp32, rank_.group.padded_numel));
    for (const BufferId buffer : widened) builder_.free(buffer);
    for (BufferId& gradient : gradients_) {
        if (gradient != no_buffer) builder_.free(gradient);
        gradient = no_buffer;
    }
    const OperationId position = builder_.next();
    flat_optimizer_step(rank_, builder_, master_, joined, states_, rank_.group.padded_numel);
    builder_.free(joined);
    return position;
}

OperationId DeepSpeedFused::step_fp32_parameters() {
    const OperationId position = builder_.next();
    BufferId any = no_buffer, values = no_buffer;
    for (const PlacedParameter& placed : rank_.group.parameters) {
        any = gradients_[placed.parameter];
        values = parameters_.values(placed.parameter);
    }
    flat_optimizer_step(rank_, builder_, values, any, states_, rank_.group.numel);
    for (BufferId& gradient : gradients_) {
        if (gradient != no_buffer) builder_.free(gradient);
        gradient = no_buffer;
    }
    return position;
}

}  // namespace zeroplan
