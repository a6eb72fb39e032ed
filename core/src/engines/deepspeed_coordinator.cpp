#include "engines/deepspeed_coordinator.hpp"

#include <algorithm>
#include <utility>

#include "engines/host_copies.hpp"
#include "engines/parameter_storage.hpp"
#include "engines/torch_units.hpp"

namespace zeroplan {

DeepSpeedCoordinator::DeepSpeedCoordinator(const DeepSpeedRank& rank, ProgramBuilder& builder,
                                           std::vector<ModuleVisit> trace)
    : rank_(rank),
      builder_(builder),
      trace_(std::move(trace)),
      persistent_(rank.model.parameters.size(), false),
      secondary_(rank.model.parameters.size(), no_buffer),
      copied_(rank.model.parameters.size()) {
    for (std::size_t v = 0; v < trace_.size(); ++v)
        for (const std::uint32_t p : trace_[v].parameters) queue_.push_back({p, v});
    choose_persistent();
}

/// Small parameters, in registration order, as long as all of them together stay below the model's threshold.
void DeepSpeedCoordinator::choose_persistent() {
    const DeepSpeedOptions& options = rank_.options;
    for (std::uint32_t p = 0; p < persistent_.size(); ++p) {
        if (rank_.model.parameters[p].shared_with || numel(p) > options.param_persistence_threshold) continue;
        if (persistent_numel_ + numel(p) > options.model_persistence_threshold) continue;
        persistent_[p] = true;
        persistent_numel_ += numel(p);
    }
}

void DeepSpeedCoordinator::use(std::vector<BufferId> persistent, std::vector<BufferId> shards) {
    whole_ = std::move(persistent);
    shards_ = std::move(shards);
}

DType DeepSpeedCoordinator::stored(std::uint32_t p) const {
    return stored_as(rank_.model.parameters[p], rank_.training.parameter_dtype).dtype;
}

Buffer DeepSpeedCoordinator::gathered(std::uint32_t p, std::uint64_t elements) const {
    return {.role = BufferRole::gathered_parameters,
            .category = Category::gathered_parameters,
            .dtype = stored(p),
            .owner = p,
            .elements = elements};
}

void DeepSpeedCoordinator::begin_micro_batch() {
    visit_ = next_in_queue_ = 0;
    entered_ = false;
    last_passed_.assign(persistent_.size(), -1);
    live_ = persistent_;
    for (std::uint32_t p = 0; p < whole_.size(); ++p)
        if (whole_[p] != no_buffer) live_[p] = true;
    waits_.clear();
}

void DeepSpeedCoordinator::enter() {
    if (entered_ || visit_ >= trace_.size()) return;
    entered_ = true;
    const ModuleVisit& visit = trace_[visit_];
    fetch(visit.parameters);
    wait_for(visit.parameters);
    // What the module uses now is no longer ahead of the prefetcher.
    std::size_t unseen = 0;
    for (const std::uint32_t p : visit.parameters)
        if (last_passed_[p] < static_cast<std::int64_t>(visit_)) ++unseen;
    for (; unseen > 0 && next_in_queue_ < queue_.size(); ++next_in_queue_, --unseen)
        last_passed_[queue_[next_in_queue_].first] = static_cast<std::int64_t>(queue_[next_in_queue_].second);
    prefetch();
    peak_live_ = std::max(peak_live_, available_ + persistent_numel_);
}

/// One collective for all that is missing. A single parameter is gathered where it will stay; several go
/// through one flat buffer.
void DeepSpeedCoordinator::fetch(const Parameters& wanted) {
    Fetch fetch;
    for (const std::uint32_t p : wanted)
        if (!live_[p]) fetch.parameters.push_back(p);
    if (fetch.parameters.empty()) return;
    std::uint64_t elements = 0;
    for (const std::uint32_t p : fetch.parameters) {
        live_[p] = true;
        available_ += numel(p);
        elements += shard(p) * rank_.ranks;
        if (shards_[p] != no_buffer) continue;
        Buffer copy = gathered(p, shard(p));
        copy.category = Category::communication_buffers;
        fetch.copies.push_back(builder_.allocate(copy, Stream::gather));
    }
    const DeepSpeedOptions& options = rank_.options;
    const std::uint32_t first = fetch.parameters.front();
    // hpZ: the smaller group gathers from its own copy once there is one. source: partition_parameters.py,
    // all_gather_coalesced (use_secondary_tensor).
    const bool second = secondary_[first] != no_buffer;
    const bool several = fetch.parameters.size() > 1 && options.mics_shard_size == 0;
    // The parameters are views of a zero-filled tensor that holds the own shards, and is summed.
    const bool sums =
        options.use_all_reduce_for_fetch_params && several && !options.quantized_weights && !second;
    const bool flat = options.quantized_weights || (several && options.rules.coalesces_gathers && !sums);
    Buffer buffer = gathered(first, elements);
    if (flat) buffer.category = Category::communication_buffers;
    if (options.quantized_weights) buffer.dtype = DType::uint8;
    const DType dtype = buffer.dtype;
    if (flat) {
        fetch.flat = builder_.allocate(buffer, Stream::gather);
    } else {
        for (const std::uint32_t p : fetch.parameters)
            whole_[p] = builder_.allocate(gathered(p, shard(p) * rank_.ranks), Stream::gather);
    }
    if (rank_.training.offload_parameters != OffloadTarget::none) bring_to_device(fetch);
    const BufferId target = flat ? fetch.flat : whole_[first];
    const BufferId source = sums                          ? target
                            : second                      ? secondary_[first]
                            : shards_[first] != no_buffer ? shards_[first]
                                                          : fetch.copies.front();
    builder_.on_stream(Stream::gather,
                       Collective{.kind = sums ? CollectiveKind::all_reduce : CollectiveKind::all_gather,
                                  .group = second ? GroupKind::secondary_shard_group : GroupKind::shard_group,
                                  .send = {source},
                                  .receive = {target},
                                  .dtype = dtype,
                                  .elements = elements,
                                  .unit = first},
                       second ? copied_to_secondary(fetch.parameters) : std::vector<OperationId>{});
    in_flight_.push_back(std::move(fetch));
}

/// The shards that are on the host come on the gathers' stream; from a drive they come by the host's memory.
/// source: partition_parameters.py, _all_gather_dtype; partitioned_param_swapper.py
void DeepSpeedCoordinator::bring_to_device(const Fetch& fetch) {
    std::uint64_t bytes = 0;
    for (const std::uint32_t p : fetch.parameters)
        if (shards_[p] == no_buffer) bytes += shard(p) * bytes_per_element(stored(p));
    if (bytes == 0) return;
    HostCopy copy{.path = CopyPath::from_nvme,
                  .role = BufferRole::parameters,
                  .owner = fetch.parameters.front(),
                  .bytes = bytes,
                  .pinned = rank_.options.offload_parameters.pin_memory};
    std::vector<OperationId> waits = builder_.last(Stream::gather);
    if (rank_.training.offload_parameters == OffloadTarget::nvme) waits.push_back(issue_copy(builder_, copy));
    copy.path = CopyPath::to_device;
    builder_.hold(Stream::gather, issue_copy(builder_, copy, std::move(waits)));
}

/// The last copy into one of these secondary shards, unless it was made before this section began.
std::vector<OperationId> DeepSpeedCoordinator::copied_to_secondary(const Parameters& parameters) const {
    std::vector<OperationId> last;
    for (const std::uint32_t p : parameters) {
        const Copied& copied = copied_[p];
        if (copied.section != builder_.section_number()) continue;
        if (last.empty() || last.front() < copied.operation) last = {copied.operation};
    }
    return last;
}

void DeepSpeedCoordinator::wait_for(const Parameters& wanted) {
    for (auto fetch = in_flight_.begin(); fetch != in_flight_.end();) {
        const bool needed = std::any_of(wanted.begin(), wanted.end(), [&](std::uint32_t p) {
            return std::find(fetch->parameters.begin(), fetch->parameters.end(), p) !=
                   fetch->parameters.end();
        });
        if (!needed) {
            ++fetch;
            continue;
        }
        assemble(*fetch);
        fetch = in_flight_.erase(fetch);
        waits_ = builder_.last(Stream::gather);
    }
}

/// AllGatherCoalescedHandle.wait: every parameter is concatenated from its pieces in the flat buffer, which
/// lives until all are there. Quantised weights are made wide in another flat buffer first.
void DeepSpeedCoordinator::assemble(Fetch& fetch) {
    std::vector<BufferId> done = std::move(fetch.copies);
    if (fetch.flat != no_buffer) {
        BufferId source = fetch.flat;
        done.push_back(fetch.flat);
        if (rank_.options.quantized_weights) {
            Buffer wide = builder_.buffer(fetch.flat);
            wide.dtype = DType::fp16;
            source = builder_.allocate(wide, Stream::gather);
            builder_.on_stream(Stream::gather, Accumulate{.from = {fetch.flat}, .to = {source}});
            done.push_back(source);
        }
        for (const std::uint32_t p : fetch.parameters) {
            whole_[p] = builder_.allocate(gathered(p, numel(p)), Stream::gather);
            builder_.on_stream(Stream::gather, Accumulate{.from = {source}, .to = {whole_[p]}, .unit = p});
        }
    }
    for (const BufferId buffer : done) given_up_.push_back({buffer, builder_.last(Stream::gather)});
    free_released();
}

void DeepSpeedCoordinator::prefetch() {
    const DeepSpeedOptions& options = rank_.options;
    if (options.prefetch_bucket_size == 0 || available_ >= options.max_live_parameters) return;
    const std::uint64_t limit =
        std::min(options.max_live_parameters - available_, options.prefetch_bucket_size);
    Parameters ahead;
    std::uint64_t elements = 0;
    while (next_in_queue_ < queue_.size() && elements < limit) {
        const auto [p, at] = queue_[next_in_queue_++];
        last_passed_[p] = std::max(last_passed_[p], static_cast<std::int64_t>(at));
        if (live_[p] || std::find(ahead.begin(), ahead.end(), p) != ahead.end()) continue;
        ahead.push_back(p);
        elements += numel(p);
    }
    fetch(ahead);
}

void DeepSpeedCoordinator::leave() {
    if (!entered_) return;
    entered_ = false;
    const ModuleVisit& visit = trace_[visit_++];
    for (const std::uint32_t p : released_after(visit)) release(p);
}

DeepSpeedCoordinator::Parameters DeepSpeedCoordinator::released_after(const ModuleVisit& visit) const {
    Parameters candidates;
    for (const std::uint32_t p : visit.parameters)
        if (!persistent_[p] && whole_[p] != no_buffer && last_passed_[p] <= static_cast<std::int64_t>(visit_))
            candidates.push_back(p);
    std::uint64_t distance = 0;
    for (std::size_t v = visit_;
         v < trace_.size() && distance < rank_.options.max_reuse_distance && !candidates.empty(); ++v)
        for (const std::uint32_t p : trace_[v].parameters) {
            std::erase(candidates, p);
            distance += numel(p);
        }
    return candidates;
}

void DeepSpeedCoordinator::release(std::uint32_t p) {
    // hpZ: a release leaves the secondary shard, with which backward gathers inside the smaller group.
    if (rank_.options.hpz_partition_size > 1 && secondary_[p] == no_buffer) {
        const std::uint64_t aligned = shard(p) * rank_.ranks;
        Buffer buffer = gathered(p, aligned / rank_.options.hpz_partition_size);
        buffer.role = BufferRole::parameters;
        buffer.category = Category::parameters;
        secondary_[p] = builder_.allocate(buffer);
        copied_[p] = {builder_.on_stream(Stream::compute,
                                         Accumulate{.from = {whole_[p]}, .to = {secondary_[p]}, .unit = p}),
                      builder_.section_number()};
    }
    given_up_.push_back({std::exchange(whole_[p], no_buffer), builder_.last(Stream::compute)});
    live_[p] = false;
    available_ -= numel(p);
    free_released();
}

/// Memory of another stream is free once that stream's users have passed: the host is at most two fetches
/// ahead (max_ongoing_fetch_events).
void DeepSpeedCoordinator::free_released() {
    constexpr std::size_t ongoing = 2;
    while (given_up_.size() > ongoing) {
        builder_.free(given_up_.front().buffer, given_up_.front().after);
        given_up_.pop_front();
    }
}

std::vector<OperationId> DeepSpeedCoordinator::take_waits() {
    return std::exchange(waits_, {});
}

void DeepSpeedCoordinator::end_micro_batch() {
    for (Fetch& fetch : in_flight_) assemble(fetch);
    in_flight_.clear();
    for (std::uint32_t p = 0; p < whole_.size(); ++p)
        if (!persistent_[p] && whole_[p] != no_buffer) release(p);
    for (const GivenUp& given_up : std::exchange(given_up_, {}))
        builder_.free(given_up.buffer, given_up.after);
}

void DeepSpeedCoordinator::drop_secondary_shards() {
    for (BufferId& buffer : secondary_) {
        if (buffer != no_buffer) builder_.free(buffer);
        buffer = no_buffer;
    }
}

}  // namespace zeroplan
