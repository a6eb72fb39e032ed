#include "engines/megatron_fsdp_reductions.hpp"

#include <set>
#include <utility>

namespace zeroplan {

void MegatronFsdpReductions::allocate_resident() {
    if (!state_.plan().double_buffers || !state_.plan().shards_gradients) return;
    pool_.fill(state_, chunk_, BufferRole::gradient_bucket, Category::communication_buffers,
               state_.plan().reduced, builder_);
}

BufferId MegatronFsdpReductions::place_of(FsdpBuffers& bucket) {
    if (!state_.shards_gradients(bucket)) return bucket.gradients;
    if (bucket.gradient_bucket != no_buffer) return bucket.gradient_bucket;
    if (pool_.serves(bucket)) keep_two_units(bucket);
    bucket.gradient_bucket = pool_.take(bucket);
    if (bucket.gradient_bucket == no_buffer)
        bucket.gradient_bucket = builder_.allocate(state_.buffer(bucket, BufferRole::gradient_bucket,
                                                                 Category::communication_buffers,
                                                                 state_.plan().reduced, bucket.layout.numel));
    return bucket.gradient_bucket;
}

/// source: _enforce_double_buffer_limit.
void MegatronFsdpReductions::keep_two_units(const FsdpBuffers& coming) {
    std::set<std::optional<std::uint32_t>> units{coming.layout.unit};
    std::size_t kept = 0;
    for (auto queued = queue_.rbegin(); queued != queue_.rend(); ++queued) {
        units.insert(chunk_[queued->bucket].layout.unit);
        if (units.size() > 2) break;
        ++kept;
    }
    while (queue_.size() > kept) free_oldest();
}

void MegatronFsdpReductions::after_backward(std::uint32_t block, bool last) {
    const bool reduces = state_.plan().shards_gradients || (state_.plan().overlaps_reduce && last);
    if (!reduces) return;
    const ModelSpec& model = state_.model();
    for (const std::uint32_t p : model.blocks[block].parameters) {
        if (model.parameters[p].shared_with) continue;
        FsdpBuffers& bucket = state_.bucket_of(p);
        const std::size_t index = state_.bucket_index(p);
        if (++ready_[index] < bucket.layout.parameters.size()) continue;
        ready_[index] = 0;
        place_of(bucket);  // there even where no operator had a gradient for it
        make_room();
        reduce(index, last);
    }
}

/// The oldest reductions are waited for while those in flight hold more than a communication unit.
void MegatronFsdpReductions::make_room() {
    std::uint64_t held = 0;
    for (const Queued& queued : queue_) held += chunk_[queued.bucket].layout.numel;
    while (held > state_.plan().communication_unit_size) {
        held -= chunk_[queue_.front().bucket].layout.numel;
        free_oldest();
    }
}

void MegatronFsdpReductions::free_oldest() {
    FsdpBuffers& bucket = chunk_[queue_.front().bucket];
    if (pool_.owns(bucket.gradient_bucket)) {
        pool_.give_back(bucket.gradient_bucket);
        given_back_ = queue_.front().reduced;  // the stream's later ones include the earlier ones
        given_back_in_ = builder_.section_number();
    } else if (bucket.gradient_bucket != no_buffer) {
        builder_.free(bucket.gradient_bucket, queue_.front().reduced);
    }
    bucket.gradient_bucket = no_buffer;
    queue_.pop_front();
}

void MegatronFsdpReductions::reduce(std::size_t index, bool last) {
    FsdpBuffers& bucket = chunk_[index];
    if (bucket.gradient_bucket != no_buffer)
        scatter(bucket);
    else
        reduce_whole(bucket);
    if (last && state_.plan().replicated) all_reduce_over_replicas(bucket);
    queue_.push_back({index, builder_.last(Stream::reduce)});
}

/// The rank's slice is reduced in the bucket, then added to what earlier micro-batches left.
void MegatronFsdpReductions::scatter(FsdpBuffers& bucket) {
    builder_.on_stream(Stream::reduce,
                       Collective{.kind = CollectiveKind::reduce_scatter,
                                  .group = state_.group_of(bucket),
                                  .send = {bucket.gradient_bucket, false},
                                  .receive = {bucket.gradient_bucket, true},
                                  .dtype = state_.plan().reduced,
                                  .elements = bucket.layout.numel,
                                  .unit = bucket.owner},
                       builder_.last(Stream::compute));
    builder_.on_stream(
        Stream::reduce,
        Accumulate{.from = {bucket.gradient_bucket, true}, .to = {bucket.gradients}, .unit = bucket.owner});
}

void MegatronFsdpReductions::reduce_whole(FsdpBuffers& bucket) {
    const bool scatters = state_.plan().shards_states;
    if (scatters && bucket.layout.shards == 1) return;
    builder_.on_stream(
        Stream::reduce,
        Collective{.kind = scatters ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                   .group = state_.group_of(bucket),
                   .send = {bucket.gradients, false},
                   .receive = {bucket.gradients, scatters},
                   .dtype = state_.plan().gradients,
                   .elements = bucket.layout.numel,
                   .unit = bucket.owner},
        builder_.last(Stream::compute));
}

void MegatronFsdpReductions::all_reduce_over_replicas(const FsdpBuffers& bucket) {
    builder_.on_stream(Stream::reduce,
                       Collective{.kind = CollectiveKind::all_reduce,
                                  .group = GroupKind::replica_group,
                                  .send = {bucket.gradients, false},
                                  .receive = {bucket.gradients, false},
                                  .dtype = state_.plan().gradients,
                                  .elements = builder_.buffer(bucket.gradients).elements,
                                  .unit = bucket.owner},
                       builder_.last(Stream::compute));
}

std::vector<OperationId> MegatronFsdpReductions::take_waits() {
    std::vector<OperationId> waits = std::exchange(given_back_, {});
    if (given_back_in_ != builder_.section_number()) waits.clear();
    return waits;
}

void MegatronFsdpReductions::finish() {
    while (!queue_.empty()) free_oldest();
}

void MegatronFsdpReductions::reduce_everything() {
    if (state_.plan().overlaps_reduce) return;
    for (std::size_t b = 0; b < chunk_.size(); ++b) reduce(b, true);
    finish();
}

}  // namespace zeroplan
