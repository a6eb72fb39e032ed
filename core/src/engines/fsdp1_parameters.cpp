#include "engines/fsdp1_parameters.hpp"

#include "engines/host_copies.hpp"

namespace zeroplan {
namespace {

/// Frees that may be outstanding before a gather waits for the oldest (_FreeEventQueue).
constexpr std::size_t outstanding_frees = 2;

}  // namespace

Fsdp1Parameters::Fsdp1Parameters(const Scenario& scenario, const std::vector<FlatParameter>& flats,
                                 ProgramBuilder& builder, ProcessGroup& shard_group)
    : model_(scenario.model),
      training_(scenario.training),
      flats_(flats),
      builder_(builder),
      shard_group_(shard_group),
      places_(flats.size()) {}

void Fsdp1Parameters::begin_section() {
    for (Place& place : places_) place.gathered.clear();
}

void Fsdp1Parameters::load(TorchOptimizer& optimizer) {
    for (std::size_t f = 0; f < flats_.size(); ++f) {
        const FlatParameter& flat = flats_[f];
        if (!on_host()) places_[f].shard = flatten_and_shard(flat);
        if (flat.statistics_bytes > 0)
            builder_.allocate(flat.buffer(BufferRole::parameters, Category::parameters, DType::uint8,
                                          flat.statistics_bytes));
        if (flat.trainable)
            optimizer.add({.parameter = flat.parameters.front().parameter,
                           .unit = flat.unit,
                           .elements = flat.shard,
                           .shape = {flat.shard},
                           .values = places_[f].shard});
    }
}

/// A unit's parameters come to the device as they are, are copied into the flat one, and that is cut.
BufferId Fsdp1Parameters::flatten_and_shard(const FlatParameter& flat) {
    const auto allocate = [&](std::uint64_t numel) {
        return builder_.allocate(flat.buffer(BufferRole::parameters, Category::parameters, flat.stored.dtype,
                                             flat.stored.elements(numel)));
    };
    std::vector<BufferId> originals;
    for (const PlacedParameter& placed : flat.parameters)
        originals.push_back(allocate(model_.parameters[placed.parameter].numel));
    const BufferId whole = allocate(flat.padded);
    for (const BufferId original : originals) builder_.free(original);
    if (!sharded()) return whole;
    const BufferId shard = allocate(flat.shard);
    builder_.free(whole);
    return shard;
}

void Fsdp1Parameters::unshard(std::uint32_t unit) {
    for (std::size_t f = 0; f < flats_.size(); ++f)
        if (flats_[f].unit == unit && places_[f].whole == no_buffer) unshard_flat(flats_[f], places_[f]);
}

/// The low-precision copy of the shard goes as soon as it is gathered. Where nothing is sharded it is the
/// whole parameter, and stays.
void Fsdp1Parameters::unshard_flat(const FlatParameter& flat, Place& place) {
    if (!sharded() && flat.stored == flat.gathered_as && !on_host()) return;
    if (training_.fsdp.limit_all_gathers.value_or(true)) free_given_up(outstanding_frees - 1);
    if (on_host()) bring_to_device(flat);
    const std::vector<BufferId> copies =
        sharded() ? copies_of_shard(flat, place.shard) : std::vector<BufferId>{};
    place.whole =
        builder_.allocate(flat.buffer(BufferRole::gathered_parameters, Category::gathered_parameters,
                                      flat.gathered_as.dtype, flat.gathered_as.elements(flat.padded)),
                          Stream::gather);
    place.gathered = {gather(flat, copies.empty() ? place.shard : copies.back(), place.whole)};
    for (const BufferId copy : copies) given_up_.push_back({copy, place.gathered});
}

/// pre_unshard: on the stream that prepares the gather.
void Fsdp1Parameters::bring_to_device(const FlatParameter& flat) {
    copy_in_line(builder_, Stream::gather,
                 {.path = CopyPath::to_device,
                  .role = BufferRole::parameters,
                  .owner = flat.unit,
                  .bytes = flat.stored.elements(flat.shard) * bytes_per_element(flat.stored.dtype)});
}

/// What the shard is copied into before it is gathered, the last of which travels: its place on the device,
/// where it is on the host, and the compute dtype, where it is stored in another.
std::vector<BufferId> Fsdp1Parameters::copies_of_shard(const FlatParameter& flat, BufferId shard) {
    std::vector<BufferId> copies;
    const auto allocate = [&](DType dtype) {
        copies.push_back(builder_.allocate(
            flat.buffer(BufferRole::gathered_parameters, Category::communication_buffers, dtype, flat.shard),
            Stream::gather));
        return copies.back();
    };
    if (on_host()) shard = allocate(training_.parameter_dtype);
    if (flat.stored != flat.gathered_as) {
        const BufferId narrow = allocate(storage_dtype(training_.compute_dtype));
        builder_.on_stream(Stream::gather, Accumulate{.from = {shard}, .to = {narrow}, .unit = flat.unit});
    }
    return copies;
}

OperationId Fsdp1Parameters::gather(const FlatParameter& flat, BufferId source, BufferId whole) {
    if (!sharded())
        return builder_.on_stream(Stream::gather,
                                  Accumulate{.from = {source}, .to = {whole}, .unit = flat.unit});
    return shard_group_.issue(Stream::gather, {.kind = CollectiveKind::all_gather,
                                               .group = GroupKind::shard_group,
                                               .send = {source},
                                               .receive = {whole},
                                               .dtype = flat.gathered_as.dtype,
                                               .elements = flat.gathered_as.elements(flat.padded),
                                               .unit = flat.unit});
}

std::vector<OperationId> Fsdp1Parameters::gather_events(const std::vector<std::uint32_t>& units) const {
    std::vector<OperationId> events;
    for (const std::uint32_t u : units)
        for (std::size_t f = 0; f < flats_.size(); ++f)
            if (flats_[f].unit == u)
                events.insert(events.end(), places_[f].gathered.begin(), places_[f].gathered.end());
    return events;
}

/// The compute stream may still read the parameters: the block is free for others once it has passed.
void Fsdp1Parameters::reshard(std::uint32_t unit) {
    for (std::size_t f = 0; f < flats_.size(); ++f) {
        Place& place = places_[f];
        if (flats_[f].unit != unit || place.whole == no_buffer) continue;
        given_up_.push_back({place.whole, builder_.last(Stream::compute)});
        place.whole = no_buffer;
        place.gathered.clear();
    }
}

void Fsdp1Parameters::free_given_up(std::size_t keep) {
    while (given_up_.size() > keep) {
        builder_.free(given_up_.front().buffer, given_up_.front().after);
        given_up_.pop_front();
    }
}

}  // namespace zeroplan
