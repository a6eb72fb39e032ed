#include "engines/native_gradients.hpp"

#include <algorithm>
#include <utility>

namespace zeroplan {
namespace {

constexpr std::size_t bucket_limit = 2;

}  // namespace

GradientPlan gradient_plan(const TrainingConfig& training) {
    const bool several = training.gradient_accumulation_steps > 1;
    const bool sharded = training.zero_stage >= 2;
    const GradientSync sync =
        training.fsdp.gradient_sync.value_or(sharded ? GradientSync::always : GradientSync::last);
    const bool local_sums = several && sync == GradientSync::last;
    return {.bucketed = local_sums ? false : sharded || several, .full_resident = !sharded || local_sums};
}

NativeGradients::NativeGradients(NativeRank& rank, ProgramBuilder& builder)
    : rank_(rank),
      builder_(builder),
      plan_(gradient_plan(rank.training)),
      tied_(rank.model.parameters.size(), false) {
    for (const Parameter& parameter : rank.model.parameters)
        if (parameter.shared_with) tied_[*parameter.shared_with] = true;
}

void NativeGradients::begin_micro_batch(bool last) {
    last_micro_batch_ = last;
    buckets_.clear();
}

void NativeGradients::end_backward() {
    while (!buckets_.empty()) free_oldest_bucket();
}

BufferId NativeGradients::target(UnitIndex unit) const {
    if (!plan_.bucketed) return rank_.units[unit].gradients;
    for (const Bucket& bucket : buckets_)
        if (bucket.unit == unit && bucket.events.empty()) return bucket.buffer;
    return no_buffer;
}

/// Backward meets the tied use in the last unit first; the owner's own use then adds to it.
bool NativeGradients::adds(std::uint32_t parameter) const {
    return !plan_.bucketed && !rank_.model.parameters[parameter].shared_with && tied_[parameter];
}

void NativeGradients::prepare(UnitIndex unit) {
    if (!plan_.bucketed) return;
    const std::vector<UnitIndex> needed = rank_.needed_units(unit);
    // Two, unless one backward writes into more at once: then only its own may be live.
    const std::size_t limit = std::max(bucket_limit, needed.size());
    for (const UnitIndex u : needed) {
        if (rank_.empty(u)) continue;
        while (buckets_.size() >= limit) free_oldest_bucket();
        const BufferId buffer =
            builder_.allocate(NativeRank::buffer(BufferRole::gradient_bucket, Category::communication_buffers,
                                                 rank_.training.gradient_dtype, u, rank_.whole(u)));
        buckets_.push_back({u, buffer, {}});
    }
}

void NativeGradients::free_oldest_bucket() {
    builder_.free(buckets_.front().buffer, buckets_.front().events);
    buckets_.pop_front();
}

void NativeGradients::reduce_after_backward(UnitIndex unit) {
    const std::vector<OperationId> produced = builder_.last(Stream::compute);
    if (plan_.bucketed) {
        for (Bucket& bucket : buckets_)
            if (bucket.events.empty()) reduce_bucket(bucket, produced);
        return;
    }
    // A tied weight's gradient is whole only after its owner's backward; units own theirs otherwise.
    if (last_micro_batch_ && rank_.stage() != 1 && !rank_.empty(unit))
        reduce_in_place(unit, rank_.units[unit].gradients, produced);
}

void NativeGradients::reduce_before_step() {
    if (rank_.stage() != 1 || plan_.bucketed) return;
    for (UnitIndex u = rank_.unit_count(); u-- > 0;)
        if (!rank_.empty(u)) reduce_in_place(u, rank_.units[u].gradients, builder_.last(Stream::compute));
}

/// all_reduce at stage 0, else reduce_scatter into the own slice (and its sum over the replicas), all in
/// place.
OperationId NativeGradients::reduce_in_place(UnitIndex unit, BufferId buffer,
                                             std::vector<OperationId> waits) {
    const bool sharded = rank_.stage() >= 1;
    const DType dtype = rank_.training.reduce_dtype;
    OperationId event = builder_.on_stream(
        Stream::reduce,
        Collective{.kind = sharded ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                   .group = sharded ? GroupKind::shard_group : GroupKind::world,
                   .send = {buffer, false},
                   .receive = {buffer, sharded},
                   .dtype = dtype,
                   .elements = rank_.whole(unit),
                   .unit = unit},
        std::move(waits));
    if (sharded && rank_.replicas > 1)
        event = builder_.on_stream(Stream::reduce, Collective{.kind = CollectiveKind::all_reduce,
                                                              .group = GroupKind::replica_group,
                                                              .send = {buffer, true},
                                                              .receive = {buffer, true},
                                                              .dtype = dtype,
                                                              .elements = rank_.layout.slice_numel(unit),
                                                              .unit = unit});
    rank_.units[unit].reduced = {event};
    return event;
}

void NativeGradients::reduce_bucket(Bucket& bucket, const std::vector<OperationId>& produced) {
    const bool sharded = rank_.stage() >= 1;
    reduce_in_place(bucket.unit, bucket.buffer, produced);
    const OperationId event = builder_.on_stream(
        Stream::reduce, Accumulate{.from = {bucket.buffer, sharded},
                                   .to = {rank_.units[bucket.unit].gradients, sharded && plan_.full_resident},
                                   .unit = bucket.unit,
                                   .always_add = tied_written_[bucket.unit]});
    tied_written_[bucket.unit] = true;
    rank_.units[bucket.unit].reduced = {event};
    bucket.events = {event};
}

}  // namespace zeroplan
