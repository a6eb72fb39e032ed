#include "engines/fsdp2_gradients.hpp"

#include <algorithm>
#include <utility>

#include "engines/host_copies.hpp"

namespace zeroplan {

void Fsdp2Gradients::allocate_resident() {
    if (rank_.sums_unsharded() && !rank_.pipelined())
        for (UnitIndex u = 0; u < rank_.unit_count(); ++u) allocate_sums(u);
    if (!rank_.accumulates() || rank_.on_host()) return;
    for (UnitIndex u = 0; u < rank_.unit_count(); ++u)
        if (rank_.unit_trained(u) > 0)
            units_[u].sharded = allocate_sharded(u, rank_.training().gradient_dtype);
}

BufferId Fsdp2Gradients::allocate_sharded(UnitIndex u, DType dtype) {
    return builder_.allocate(
        rank_.buffer(BufferRole::gradients, Category::gradients, dtype, u, rank_.unit_trained(u)),
        Stream::reduce);
}

BufferId Fsdp2Gradients::gradient(std::uint32_t p) {
    const Parameter& parameter = rank_.model().parameters[p];
    if (!parameter.trainable) return no_buffer;
    const UnitIndex u = rank_.unit_of(p);
    std::vector<BufferId>& gradients = units_[u].gradients;
    gradients.resize(rank_.unit(u).parameters.size(), no_buffer);
    BufferId& known = gradients[rank_.position(p)];
    const BufferId fresh =
        builder_.allocate(rank_.buffer(BufferRole::gradients, Category::gradients, rank_.compute_dtype(), u,
                                       parameter.numel, rank_.position(p) + 1));
    if (known == no_buffer)
        known = fresh;
    else
        second_contributions_.add(fresh, known);
    return fresh;
}

void Fsdp2Gradients::allocate_sums(UnitIndex u) {
    for (const std::uint32_t p : rank_.unit(u).parameters) {
        const Parameter& parameter = rank_.model().parameters[p];
        units_[u].summed.push_back(
            parameter.trainable ? builder_.allocate(rank_.buffer(BufferRole::gradients, Category::gradients,
                                                                 rank_.training().reduce_dtype, u,
                                                                 parameter.numel, rank_.position(p) + 1))
                                : no_buffer);
    }
}

/// A micro-batch that isn't reduced leaves its gradients in the dtype of the reduction.
void Fsdp2Gradients::sum_gradients(UnitIndex u) {
    Unit& unit = units_[u];
    if (unit.summed.empty()) allocate_sums(u);
    for (std::size_t i = 0; i < unit.gradients.size(); ++i) {
        if (unit.gradients[i] == no_buffer) continue;
        builder_.on_stream(Stream::compute,
                           Accumulate{.from = {unit.gradients[i]}, .to = {unit.summed[i]}, .unit = u});
        builder_.free(unit.gradients[i]);
        unit.gradients[i] = no_buffer;
    }
    if (reduces_) unit.gradients = rank_.pipelined() ? std::exchange(unit.summed, {}) : unit.summed;
}

void Fsdp2Gradients::post_backward(UnitIndex u) {
    if (rank_.sums_unsharded()) sum_gradients(u);
    if (!reduces_) return;
    const std::vector<BufferId>& gradients = units_[u].gradients;
    if (std::all_of(gradients.begin(), gradients.end(), [](BufferId id) { return id == no_buffer; })) return;
    finish_reduction();
    reduce_scatter(u, copy_to_reduce(u));
}

BufferId Fsdp2Gradients::copy_to_reduce(UnitIndex u) {
    const BufferId input = builder_.allocate(
        rank_.buffer(BufferRole::gradient_bucket, Category::communication_buffers,
                     rank_.training().reduce_dtype, u, rank_.unit_trained(u) * rank_.ranks()));
    for (const BufferId gradient : units_[u].gradients) {
        if (gradient == no_buffer) continue;
        builder_.on_stream(Stream::compute, Accumulate{.from = {gradient}, .to = {input}, .unit = u});
        // Other sums are resident.
        if (!rank_.sums_unsharded() || rank_.pipelined()) builder_.free(gradient);
    }
    units_[u].gradients.clear();
    return input;
}

/// The reduction's input lives until the next unit's gradients are ready. It queues with the gathers: both
/// are the shard group's; the sum over replicas is another group's. source: _fsdp_param_group.py
/// (_all_gather_process_group, _reduce_scatter_process_group)
void Fsdp2Gradients::reduce_scatter(UnitIndex u, BufferId input) {
    const DType dtype = rank_.training().reduce_dtype;
    const std::uint64_t elements = rank_.unit_trained(u);
    const BufferId output = allocate_sharded(u, dtype);
    shard_group_.issue(Stream::reduce,
                       {.kind = CollectiveKind::reduce_scatter,
                        .group = GroupKind::shard_group,
                        .send = {input},
                        .receive = {output},
                        .dtype = dtype,
                        .elements = elements * rank_.ranks(),
                        .unit = u},
                       builder_.last(Stream::compute));
    if (rank_.replicas() > 1)
        builder_.on_stream(Stream::reduce, Collective{.kind = CollectiveKind::all_reduce,
                                                      .group = GroupKind::replica_group,
                                                      .send = {output},
                                                      .receive = {output},
                                                      .dtype = dtype,
                                                      .elements = elements,
                                                      .unit = u});
    reduction_inputs_.push_back(input);
    keep(u, output);
    reduced_ = builder_.last(rank_.on_host() ? Stream::to_host : Stream::reduce);
}

/// The reduced gradient becomes the sharded one: as it is, cast, added to the sum, or sent to the host.
void Fsdp2Gradients::keep(UnitIndex u, BufferId output) {
    Unit& unit = units_[u];
    if (rank_.on_host()) {
        // FSDPParam: the sharded gradient in the parameter's dtype, on the stream that has reduced it.
        copy_in_line(builder_, Stream::reduce,
                     {.path = CopyPath::to_host,
                      .role = BufferRole::gradients,
                      .owner = u,
                      .bytes = rank_.unit_trained(u) * bytes_per_element(rank_.training().gradient_dtype),
                      .buffer = output});
        reduction_inputs_.push_back(output);
        return;
    }
    const TrainingConfig& training = rank_.training();
    if (training.reduce_dtype == training.gradient_dtype && !rank_.accumulates()) {
        unit.sharded = output;
        return;
    }
    if (!rank_.accumulates()) unit.sharded = allocate_sharded(u, training.gradient_dtype);
    builder_.on_stream(Stream::reduce, Accumulate{.from = {output}, .to = {unit.sharded}, .unit = u});
    reduction_inputs_.push_back(output);
}

void Fsdp2Gradients::finish_reduction() {
    for (const BufferId id : reduction_inputs_) builder_.free(id, reduced_);
    reduction_inputs_.clear();
}

void Fsdp2Gradients::give_to(TorchOptimizer& optimizer) const {
    for (OwnedParameter& parameter : optimizer.parameters())
        parameter.gradient = units_[parameter.unit].sharded;
}

void Fsdp2Gradients::free_after_step() {
    if (rank_.accumulates() || rank_.on_host()) return;
    for (Unit& unit : units_) builder_.free_if_there(unit.sharded);
}

}  // namespace zeroplan
