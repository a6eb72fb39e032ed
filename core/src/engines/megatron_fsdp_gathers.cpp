#include "engines/megatron_fsdp_gathers.hpp"

#include <utility>

namespace zeroplan {

void MegatronFsdpGathers::allocate_resident() {
    if (!state_.plan().double_buffers || !state_.plan().shards_parameters) return;
    pool_.fill(state_, chunk_, BufferRole::gathered_parameters, Category::gathered_parameters,
               state_.plan().parameters, builder_);
}

void MegatronFsdpGathers::begin_step() {
    gathered_.assign(chunk_.size(), {});
}

MegatronFsdpGathers::Buckets MegatronFsdpGathers::read_by(std::uint32_t block) const {
    Buckets read;
    for (const std::uint32_t p : state_.model().blocks[block].parameters) read.insert(state_.bucket_index(p));
    return read;
}

/// Buckets follow one another without a gap, forward from the first one read or backward from the last, until
/// those that were added hold half a communication unit. Two sets of buffers serve two units.
MegatronFsdpGathers::Buckets MegatronFsdpGathers::with_window(Buckets buckets, Direction direction) const {
    const std::uint64_t limit = state_.plan().communication_unit_size / 2;
    const bool forward = direction == Direction::forward;
    std::set<std::optional<std::uint32_t>> units;
    bool of_units = false;
    for (const std::size_t b : buckets) {
        of_units = of_units || chunk_[b].layout.unit.has_value();
        if (pool_.serves(chunk_[b])) units.insert(chunk_[b].layout.unit);
    }
    if (state_.plan().double_buffers && !of_units) return buckets;
    std::uint64_t added = 0;
    auto next = static_cast<std::ptrdiff_t>(forward ? *buckets.begin() : *buckets.rbegin());
    while (added < limit) {
        while (next >= 0 && buckets.count(static_cast<std::size_t>(next)) > 0) next += forward ? 1 : -1;
        if (next < 0 || next == static_cast<std::ptrdiff_t>(chunk_.size())) break;
        const FsdpBuffers& bucket = chunk_[static_cast<std::size_t>(next)];
        units.insert(bucket.layout.unit);
        if (state_.plan().double_buffers && units.size() > 2) break;
        buckets.insert(static_cast<std::size_t>(next));
        added += bucket.layout.numel;
    }
    return buckets;
}

void MegatronFsdpGathers::gather_all(const Buckets& read, Direction direction, bool ahead) {
    if (!state_.plan().shards_states || !state_.plan().overlaps_gather || read.empty()) return;
    for (const std::size_t b : read) releasable_.erase(b);
    for (const std::size_t b : ahead ? with_window(read, direction) : read)
        if (!gathered_[b].done) gather_bucket(b);
    awaited_.insert(read.begin(), read.end());
}

void MegatronFsdpGathers::gather_everything() {
    if (!state_.plan().shards_states || state_.plan().overlaps_gather) return;
    for (std::size_t b = 0; b < chunk_.size(); ++b) gather_bucket(b);
}

/// Into the pool's buffer of the unit, one made for it, or the one that stays with what is of no unit.
void MegatronFsdpGathers::make_room(FsdpBuffers& bucket) {
    if (bucket.gathered != no_buffer) return;
    bucket.gathered = pool_.take(bucket);
    if (bucket.gathered == no_buffer)
        bucket.gathered = builder_.allocate(
            state_.buffer(bucket, BufferRole::gathered_parameters, Category::gathered_parameters,
                          state_.plan().parameters, bucket.layout.numel),
            Stream::gather);
}

/// The gather's stream waits for what was issued to the compute stream before.
void MegatronFsdpGathers::gather_bucket(std::size_t index) {
    FsdpBuffers& bucket = chunk_[index];
    gathered_[index] = {.done = true, .operation = 0, .section = 0};
    if (bucket.layout.shards == 1) return;
    releasable_.erase(index);
    recycle();
    make_room(bucket);
    const bool in_place = bucket.gathered == bucket.weights;
    gathered_[index].operation = builder_.on_stream(Stream::gather,
                                                    Collective{.kind = CollectiveKind::all_gather,
                                                               .group = state_.group_of(bucket),
                                                               .send = {bucket.weights, in_place},
                                                               .receive = {bucket.gathered, false},
                                                               .dtype = state_.plan().parameters,
                                                               .elements = bucket.layout.numel,
                                                               .unit = bucket.owner},
                                                    builder_.last(Stream::compute));
    gathered_[index].section = builder_.section_number();
}

void MegatronFsdpGathers::release(std::uint32_t block) {
    for (const std::size_t b : read_by(block))
        if (chunk_[b].layout.unit == block) release_bucket(b);
}

void MegatronFsdpGathers::release_bucket(std::size_t index) {
    FsdpBuffers& bucket = chunk_[index];
    Gathered& gathered = gathered_[index];
    if (!state_.shards_parameters(bucket) || !gathered.done) return;
    std::vector<OperationId> waits;
    if (gathered.section == builder_.section_number()) waits.push_back(gathered.operation);
    gathered = {};
    releasable_.erase(index);
    if (pool_.owns(bucket.gathered))
        pool_.give_back(bucket.gathered);
    else
        builder_.free(bucket.gathered, std::move(waits));
    bucket.gathered = no_buffer;
}

void MegatronFsdpGathers::begin_backward() {
    for (std::size_t b = 0; b < chunk_.size(); ++b)
        if (chunk_[b].layout.unit && gathered_[b].done) releasable_.insert(b);
}

/// source: AllGatherPipeline.recycle_unused_buckets.
void MegatronFsdpGathers::recycle() {
    for (const std::size_t b : std::exchange(releasable_, {})) release_bucket(b);
}

std::vector<OperationId> MegatronFsdpGathers::take_waits() {
    std::vector<OperationId> waits;
    for (const std::size_t b : std::exchange(awaited_, {}))
        if (gathered_[b].done && gathered_[b].section == builder_.section_number())
            waits.push_back(gathered_[b].operation);
    return waits;
}

}  // namespace zeroplan
