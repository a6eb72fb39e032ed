#include "engines/fsdp1_gradients.hpp"

#include <algorithm>
#include <utility>

#include "engines/host_copies.hpp"

namespace zeroplan {

Fsdp1Gradients::Fsdp1Gradients(const Scenario& scenario, const std::vector<FlatParameter>& flats,
                               const std::vector<std::size_t>& flat_of_parameter, ProgramBuilder& builder,
                               ProcessGroup& shard_group)
    : model_(scenario.model),
      training_(scenario.training),
      flats_(flats),
      flat_of_(flat_of_parameter),
      builder_(builder),
      shard_group_(shard_group),
      replicas_(training_.data_parallel * training_.context_parallel / training_.shard_group),
      compute_(storage_dtype(training_.compute_dtype)),
      sharded_(flats.size(), no_buffer),
      unsharded_(flats.size(), no_buffer),
      gradients_(model_.parameters.size(), no_buffer) {}

bool Fsdp1Gradients::Reduced::uses(BufferId buffer) const {
    return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
}

BufferId Fsdp1Gradients::allocate_shard(const FlatParameter& flat, DType dtype) {
    return builder_.allocate(flat.buffer(BufferRole::gradients, Category::gradients, dtype, flat.shard),
                             Stream::reduce);
}

void Fsdp1Gradients::allocate_resident() {
    if (!accumulates() || on_host()) return;
    for (std::size_t f = 0; f < flats_.size(); ++f)
        if (flats_[f].trainable) sharded_[f] = allocate_shard(flats_[f], training_.gradient_dtype);
}

BufferId Fsdp1Gradients::gradient(std::uint32_t parameter) {
    if (!model_.parameters[parameter].trainable) return no_buffer;
    const BufferId fresh = builder_.allocate(flats_[flat_of_[parameter]].buffer(
        BufferRole::gradients, Category::gradients, compute_, model_.parameters[parameter].numel));
    if (gradients_[parameter] == no_buffer)
        gradients_[parameter] = fresh;
    else
        second_contributions_.add(fresh, gradients_[parameter]);
    return fresh;
}

void Fsdp1Gradients::join(std::uint32_t unit) {
    for (std::size_t f = 0; f < flats_.size(); ++f) {
        if (flats_[f].unit != unit || !flats_[f].trainable) continue;
        const BufferId sum = add_to_unsharded(f, join_flat(flats_[f]));
        if (!reduces_) continue;
        joined_.push_back({f, sum});
        unsharded_[f] = no_buffer;
    }
}

/// AccumulateGrad: the first gradient is taken over, others are added to it, in the dtype of the computation.
BufferId Fsdp1Gradients::add_to_unsharded(std::size_t f, BufferId joined) {
    BufferId& sum = unsharded_[f];
    if (sum == no_buffer) return sum = joined;
    builder_.on_stream(Stream::compute,
                       Accumulate{.from = {joined}, .to = {sum}, .unit = flats_[f].unit, .always_add = true});
    builder_.free(joined);
    return sum;
}

BufferId Fsdp1Gradients::join_flat(const FlatParameter& flat) {
    const BufferId joined =
        builder_.allocate(flat.buffer(BufferRole::gradients, Category::gradients, compute_, flat.padded));
    for (const PlacedParameter& placed : flat.parameters)
        if (const BufferId part = gradients_[placed.parameter]; part != no_buffer)
            builder_.on_stream(Stream::compute,
                               Accumulate{.from = {part}, .to = {joined}, .unit = flat.unit});
    for (const PlacedParameter& placed : flat.parameters)
        builder_.free_if_there(gradients_[placed.parameter]);
    return joined;
}

void Fsdp1Gradients::reduce() {
    if (joined_.empty()) return;
    free_reduced(before_last_);
    before_last_ = std::exchange(last_reduced_, {});
    for (const Joined& joined : joined_) reduce_flat(joined);
    joined_.clear();
}

/// Cast to the dtype of the reduction, reduced, and cast to the parameter's. The operands are given up at
/// once, but their memory is free when the collective has ended.
void Fsdp1Gradients::reduce_flat(const Joined& joined) {
    const FlatParameter& flat = flats_[joined.flat];
    std::vector<OperationId> waits = builder_.last(Stream::compute);
    last_reduced_.buffers.push_back(joined.gradient);
    BufferId output = joined.gradient;
    if (training_.reduce_dtype != compute_) output = cast_to_reduce(flat, output, std::exchange(waits, {}));
    if (sharded()) output = reduce_scatter(flat, output, std::exchange(waits, {}));
    if (!sharded() || replicas_ > 1)
        builder_.on_stream(Stream::reduce,
                           Collective{.kind = CollectiveKind::all_reduce,
                                      .group = sharded() ? GroupKind::replica_group : GroupKind::world,
                                      .send = {output},
                                      .receive = {output},
                                      .dtype = training_.reduce_dtype,
                                      .elements = flat.shard,
                                      .unit = flat.unit},
                           waits);
    keep(joined.flat, output);
    last_reduced_.after = builder_.last(on_host() ? Stream::to_host : Stream::reduce);
}

BufferId Fsdp1Gradients::cast_to_reduce(const FlatParameter& flat, BufferId joined,
                                        std::vector<OperationId> waits) {
    const BufferId input =
        builder_.allocate(flat.buffer(BufferRole::gradient_bucket, Category::communication_buffers,
                                      training_.reduce_dtype, flat.padded),
                          Stream::reduce);
    builder_.on_stream(Stream::reduce, Accumulate{.from = {joined}, .to = {input}, .unit = flat.unit},
                       std::move(waits));
    last_reduced_.buffers.push_back(input);
    return input;
}

BufferId Fsdp1Gradients::reduce_scatter(const FlatParameter& flat, BufferId input,
                                        std::vector<OperationId> waits) {
    const BufferId output = allocate_shard(flat, training_.reduce_dtype);
    shard_group_.issue(Stream::reduce,
                       {.kind = CollectiveKind::reduce_scatter,
                        .group = GroupKind::shard_group,
                        .send = {input},
                        .receive = {output},
                        .dtype = training_.reduce_dtype,
                        .elements = flat.padded,
                        .unit = flat.unit},
                       std::move(waits));
    return output;
}

/// The reduced gradient becomes the sharded one: as it is, cast, added to the sum, or sent to the host.
void Fsdp1Gradients::keep(std::size_t f, BufferId output) {
    std::vector<BufferId>& buffers = last_reduced_.buffers;
    const bool same = training_.reduce_dtype == training_.gradient_dtype;
    if (!on_host() && same && !accumulates()) {
        sharded_[f] = output;
        buffers.erase(std::remove(buffers.begin(), buffers.end(), output), buffers.end());
        return;
    }
    if (!on_host()) {
        if (!accumulates()) sharded_[f] = allocate_shard(flats_[f], training_.gradient_dtype);
        builder_.on_stream(Stream::reduce,
                           Accumulate{.from = {output}, .to = {sharded_[f]}, .unit = flats_[f].unit});
    }
    if (on_host())
        copy_in_line(builder_, Stream::reduce,
                     {.path = CopyPath::to_host,
                      .role = BufferRole::gradients,
                      .owner = flats_[f].unit,
                      .bytes = flats_[f].shard * bytes_per_element(training_.gradient_dtype),
                      .buffer = output});
    if (!last_reduced_.uses(output)) buffers.push_back(output);
}

/// The host runs as far ahead as the rate limiter lets it, two units: so long is a reduction's memory taken,
/// as the streams that use it are recorded.
void Fsdp1Gradients::free_reduced(Reduced& reduced) {
    for (const BufferId id : reduced.buffers) builder_.free(id, reduced.after);
    reduced = {};
}

void Fsdp1Gradients::finish_reduction() {
    free_reduced(before_last_);
    free_reduced(last_reduced_);
}

void Fsdp1Gradients::give_to(TorchOptimizer& optimizer) const {
    std::size_t next = 0;
    for (std::size_t f = 0; f < flats_.size(); ++f)
        if (flats_[f].trainable) optimizer.parameters()[next++].gradient = sharded_[f];
}

void Fsdp1Gradients::free_after_step() {
    if (accumulates()) return;
    for (BufferId& gradient : sharded_) builder_.free_if_there(gradient);
}

}  // namespace zeroplan
