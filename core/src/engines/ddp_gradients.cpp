#include "engines/ddp_gradients.hpp"

#include <utility>

namespace zeroplan {

DdpGradients::DdpGradients(const Scenario& scenario, const DdpParameters& parameters,
                           TorchOptimizer& optimizer, ProgramBuilder& builder)
    : model_(scenario.model),
      training_(scenario.training),
      parameters_(parameters),
      optimizer_(optimizer),
      builder_(builder),
      reduces_(scenario.training.engine != EngineKind::single),
      tensors_(model_.parameters.size()),
      uses_(model_.parameters.size(), 1) {
    for (const Parameter& parameter : model_.parameters)
        if (parameter.shared_with) ++uses_[*parameter.shared_with];
}

void DdpGradients::allocate_buckets() {
    buckets_ = ddp_buckets(model_, bytes_per_element(training_.gradient_dtype));
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
        DdpBucket& bucket = buckets_[b];
        for (const std::uint32_t p : bucket.parameters) tensors_[p].bucket = b;
        bucket.buffer = builder_.allocate({.role = BufferRole::gradient_bucket,
                                           .category = Category::communication_buffers,
                                           .dtype = training_.gradient_dtype,
                                           .owner = parameters_.unit(bucket.parameters.front()),
                                           .elements = bucket.elements});
    }
}

void DdpGradients::allocate_resident() {
    if (reduces_) allocate_buckets();
    if (!accumulates() || steps_in_backward()) return;
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
        if (model_.parameters[p].trainable && !model_.parameters[p].shared_with)
            tensors_[p].gradient = allocate(training_.gradient_dtype, p);
}

void DdpGradients::begin_micro_batch(bool last) {
    last_ = last;
    for (Tensors& tensors : tensors_) tensors.contributions = 0;
    for (DdpBucket& bucket : buckets_) bucket.missing = bucket.parameters.size();
}

/// Autograd makes a gradient in the dtype of the product.
BufferId DdpGradients::gradient(std::uint32_t p) {
    if (!model_.parameters[p].trainable) return no_buffer;
    const DType dtype =
        parameters_.is_cast(p) ? storage_dtype(training_.compute_dtype) : training_.parameter_dtype;
    fresh_.push_back({p, allocate(dtype, p)});
    return fresh_.back().buffer;
}

void DdpGradients::keep_fresh() {
    for (const Fresh& fresh : fresh_) keep(fresh);
    fresh_.clear();
}

bool DdpGradients::has_wrong_size(BufferId gradient) const {
    return bytes_per_element(builder_.buffer(gradient).dtype) != bytes_per_element(training_.gradient_dtype);
}

/// It is cast to the parameter's dtype under autocast, and kept as it is unless there is one to add it to.
void DdpGradients::keep(const Fresh& fresh) {
    Tensors& tensors = tensors_[fresh.parameter];
    ++tensors.contributions;
    if (tensors.gradient == no_buffer && !has_wrong_size(fresh.buffer))
        tensors.gradient = fresh.buffer;
    else
        add(fresh);
    if (tensors.contributions < uses_[fresh.parameter]) return;
    if (steps_in_backward()) return step_in_backward(fresh.parameter);
    if (reduces_ && last_) reduce(buckets_[tensors.bucket]);
    if (!reduces_ && last_) send_to_host(fresh.parameter);
}

/// A gradient that the host needs leaves when it is complete, beside the rest of backward; offloaded itself,
/// it is given up then. source: torchao/optim/cpu_offload.py (backward_hook, offload_gradients)
void DdpGradients::send_to_host(std::uint32_t p) {
    if (!optimizer_.steps_on_host()) return;
    for (OwnedParameter& parameter : optimizer_.parameters()) {
        if (parameter.parameter != p) continue;
        parameter.gradient = tensors_[p].gradient;
        optimizer_.gradient_complete(parameter);
        if (training_.offload_gradients != OffloadTarget::none)
            builder_.free(std::exchange(tensors_[p].gradient, no_buffer), builder_.last(Stream::to_host));
    }
}

void DdpGradients::add(const Fresh& fresh) {
    Tensors& tensors = tensors_[fresh.parameter];
    if (tensors.gradient == no_buffer) tensors.gradient = allocate(training_.gradient_dtype, fresh.parameter);
    builder_.on_stream(Stream::compute, Accumulate{.from = {fresh.buffer},
                                                   .to = {tensors.gradient},
                                                   .unit = parameters_.unit(fresh.parameter),
                                                   .always_add = tensors.contributions > 1});
    builder_.free(fresh.buffer);
}

void DdpGradients::step_in_backward(std::uint32_t p) {
    if (step_position_ == 0) step_position_ = builder_.next();
    for (OwnedParameter& parameter : optimizer_.parameters())
        if (parameter.parameter == p) {
            parameter.gradient = tensors_[p].gradient;
            optimizer_.step_one(parameter);
        }
    if (tensors_[p].gradient != no_buffer && optimizer_.steps_on_host())
        builder_.free(std::exchange(tensors_[p].gradient, no_buffer), builder_.last(Stream::to_host));
    builder_.free_if_there(tensors_[p].gradient);
}

/// A bucket whose gradients are all there is reduced, and copied back to them.
void DdpGradients::reduce(DdpBucket& bucket) {
    if (--bucket.missing > 0) return;
    for (const std::uint32_t p : bucket.parameters)
        builder_.on_stream(
            Stream::compute,
            Accumulate{.from = {tensors_[p].gradient}, .to = {bucket.buffer}, .unit = parameters_.unit(p)});
    const BufferId travels = compresses() ? compressed(bucket) : bucket.buffer;
    builder_.on_stream(Stream::reduce,
                       Collective{.kind = CollectiveKind::all_reduce,
                                  .group = GroupKind::world,
                                  .send = {travels},
                                  .receive = {travels},
                                  .dtype = builder_.buffer(travels).dtype,
                                  .elements = bucket.elements,
                                  .unit = builder_.buffer(bucket.buffer).owner},
                       builder_.last(Stream::compute));
    if (travels != bucket.buffer) decompress(bucket, travels);
}

/// A communication hook sends a narrower copy of the bucket. source:
/// torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py (bf16_compress_hook)
BufferId DdpGradients::compressed(const DdpBucket& bucket) {
    Buffer narrow = builder_.buffer(bucket.buffer);
    narrow.dtype = training_.reduce_dtype;
    const BufferId copy = builder_.allocate(narrow);
    builder_.on_stream(Stream::compute,
                       Accumulate{.from = {bucket.buffer}, .to = {copy}, .unit = narrow.owner});
    return copy;
}

void DdpGradients::decompress(const DdpBucket& bucket, BufferId narrow) {
    const OperationId done = builder_.on_stream(
        Stream::reduce,
        Accumulate{.from = {narrow}, .to = {bucket.buffer}, .unit = builder_.buffer(narrow).owner});
    builder_.free(narrow, {done});
}

void DdpGradients::copy_back() {
    for (const DdpBucket& bucket : buckets_)
        for (const std::uint32_t p : bucket.parameters)
            builder_.on_stream(Stream::compute, Accumulate{.from = {bucket.buffer},
                                                           .to = {tensors_[p].gradient},
                                                           .unit = parameters_.unit(p)});
}

OperationId DdpGradients::step() {
    if (steps_in_backward()) return step_position_;
    copy_back();
    const OperationId position = builder_.next();
    for (OwnedParameter& parameter : optimizer_.parameters())
        if (training_.offload_gradients == OffloadTarget::none)
            parameter.gradient = tensors_[parameter.parameter].gradient;
    optimizer_.step();
    if (optimizer_.steps_on_host()) builder_.wait_for_all();
    return position;
}

void DdpGradients::free_after_step() {
    if (accumulates()) return;
    for (Tensors& tensors : tensors_) builder_.free_if_there(tensors.gradient);
}

}  // namespace zeroplan
