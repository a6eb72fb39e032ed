#include "engines/fsdp2_parameters.hpp"

#include <utility>

#include "engines/host_copies.hpp"

namespace zeroplan {

void Fsdp2Parameters::load(TorchOptimizer& optimizer) {
    for (UnitIndex u = 0; u < rank_.unit_count(); ++u) load_unit(u, optimizer);
}

void Fsdp2Parameters::load_unit(UnitIndex u, TorchOptimizer& optimizer) {
    for (const std::uint32_t p : rank_.unit(u).parameters) {
        const Parameter& parameter = rank_.model().parameters[p];
        const std::uint32_t position = rank_.position(p) + 1;
        RowShard shard = rank_.shard(p);
        BufferId values = no_buffer;
        const auto allocate = [&](DType dtype, std::uint64_t elements) {
            return builder_.allocate(
                rank_.buffer(BufferRole::parameters, Category::parameters, dtype, u, elements, position));
        };
        const StoredAs as = rank_.stored(p);
        if (!rank_.on_host()) values = allocate(as.dtype, as.elements(shard.padded));
        if (const std::uint64_t bytes = statistics_bytes(parameter) / rank_.ranks(); bytes > 0)
            allocate(DType::uint8, bytes);
        if (!parameter.trainable) continue;
        OwnedParameter owned{.parameter = p,
                             .unit = u,
                             .position = position,
                             .elements = shard.owned,
                             .shape = std::move(shard.shape),
                             .values = values,
                             .states = {}};
        add_matrix(owned, rank_.training(), rank_.model(), shard.padded, rank_.ranks());
        optimizer.add(std::move(owned));
    }
}

/// The previous unit's gather buffer is given up once this unit's gather is issued, so that its copy-in
/// doesn't have to wait for the previous copy-out.
void Fsdp2Parameters::unshard_for_forward(UnitIndex u) {
    Unit& unit = units_[u];
    if (rank_.empty(u) || unit.is_unsharded) return;
    all_gather(u);
    flush_forward_gather();
    copy_out(u);
    forward_gather_ = std::exchange(unit.gathering, no_buffer);
    forward_gather_copied_ = builder_.last(Stream::compute);
}

void Fsdp2Parameters::flush_forward_gather() {
    if (forward_gather_ == no_buffer) return;
    builder_.free(forward_gather_, forward_gather_copied_);
    forward_gather_ = no_buffer;
}

void Fsdp2Parameters::unshard_for_backward(UnitIndex u) {
    Unit& unit = units_[u];
    if (rank_.empty(u) || unit.is_unsharded) return;
    if (unit.gathering == no_buffer) all_gather(u);
    copy_out(u);
    builder_.free(unit.gathering, builder_.last(Stream::compute));
    unit.gathering = no_buffer;
}

void Fsdp2Parameters::prefetch(UnitIndex u) {
    if (rank_.empty(u) || units_[u].is_unsharded || units_[u].gathering != no_buffer) return;
    all_gather(u);
}

/// Parameters that travel in several dtypes travel as bytes.
Fsdp2Parameters::GatherSize Fsdp2Parameters::gather_size(UnitIndex u) const {
    std::uint64_t bytes = 0;
    DType dtype = rank_.compute_dtype();
    for (const std::uint32_t p : rank_.unit(u).parameters) {
        const StoredAs as = rank_.gathered(p);
        bytes += as.elements(rank_.padded(p)) * bytes_per_element(as.dtype);
        if (as.dtype != rank_.compute_dtype()) dtype = DType::uint8;
    }
    return {dtype, bytes / bytes_per_element(dtype) * rank_.ranks()};
}

/// Every shard is cast to the compute dtype first, where it differs (or copied to the device, where it is on
/// the host).
std::vector<BufferId> Fsdp2Parameters::copies_to_gather(UnitIndex u) {
    std::vector<BufferId> copies;
    for (const std::uint32_t p : rank_.unit(u).parameters) {
        const StoredAs stored = rank_.stored(p), gathered = rank_.gathered(p);
        const auto copy = [&](const StoredAs& as) {
            copies.push_back(builder_.allocate(
                rank_.buffer(BufferRole::gathered_parameters, Category::communication_buffers, as.dtype, u,
                             as.elements(rank_.padded(p)), rank_.position(p) + 1),
                Stream::gather));
        };
        if (units_[u].post_forward != no_buffer) continue;
        if (rank_.on_host()) copy(stored);
        if (stored != gathered) copy(gathered);
    }
    return copies;
}

/// The shards come on a stream beside the gathers' (all_gather_copy_in_stream).
void Fsdp2Parameters::bring_to_device(UnitIndex u) {
    std::uint64_t bytes = 0;
    for (const std::uint32_t p : rank_.unit(u).parameters) {
        const StoredAs as = rank_.stored(p);
        bytes += as.elements(rank_.padded(p)) * bytes_per_element(as.dtype);
    }
    builder_.hold(Stream::gather, issue_copy(builder_, {.path = CopyPath::to_device,
                                                        .role = BufferRole::parameters,
                                                        .owner = u,
                                                        .bytes = bytes}));
}

/// The copies go once they stand in the gather buffer. After a forward that left shards of a smaller group,
/// that group alone gathers them. source: _fsdp_param_group.py (_all_gather_process_group)
void Fsdp2Parameters::all_gather(UnitIndex u) {
    Unit& unit = units_[u];
    const bool second = unit.post_forward != no_buffer;
    const std::vector<BufferId> copies = copies_to_gather(u);
    if (rank_.on_host() && !second) bring_to_device(u);
    const auto [dtype, elements] = gather_size(u);
    unit.gathering = builder_.allocate(
        rank_.buffer(BufferRole::gathered_parameters, Category::communication_buffers, dtype, u, elements),
        Stream::gather);
    const Collective gather{.kind = CollectiveKind::all_gather,
                            .group = second ? GroupKind::secondary_shard_group : GroupKind::shard_group,
                            .send = second ? Operand{unit.post_forward} : Operand{unit.gathering, true},
                            .receive = {unit.gathering, false},
                            .dtype = dtype,
                            .elements = elements,
                            .unit = u};
    unit.gathered = {second ? builder_.on_stream(Stream::gather, gather)
                            : shard_group_.issue(Stream::gather, gather)};
    for (const BufferId copy : copies) builder_.free(copy);
}

void Fsdp2Parameters::copy_out(UnitIndex u) {
    Unit& unit = units_[u];
    for (const std::uint32_t p : rank_.unit(u).parameters) {
        const StoredAs as = rank_.gathered(p);
        unit.unsharded.push_back(builder_.allocate(
            rank_.buffer(BufferRole::gathered_parameters, Category::gathered_parameters, as.dtype, u,
                         as.elements(rank_.padded(p)) * rank_.ranks(), rank_.position(p) + 1)));
    }
    for (const BufferId parameter : unit.unsharded)
        builder_.on_stream(Stream::compute,
                           Accumulate{.from = {unit.gathering}, .to = {parameter}, .unit = u}, unit.gathered);
    if (unit.post_forward != no_buffer) {
        builder_.free(unit.post_forward, unit.gathered);
        unit.post_forward = no_buffer;
    }
    unit.is_unsharded = true;
}

void Fsdp2Parameters::reshard_after_forward(UnitIndex u) {
    if (!rank_.reshards_after_forward(u)) return;
    if (units_[u].is_unsharded && rank_.second_group() > 0)
        units_[u].post_forward = builder_.allocate(rank_.buffer(
            BufferRole::gathered_parameters, Category::gathered_parameters, rank_.compute_dtype(), u,
            rank_.unit_padded(u) * rank_.ranks() / rank_.second_group()));
    reshard(u);
}

void Fsdp2Parameters::reshard(UnitIndex u) {
    Unit& unit = units_[u];
    if (!unit.is_unsharded) return;
    for (const BufferId parameter : unit.unsharded) builder_.free(parameter);
    unit.unsharded.clear();
    unit.is_unsharded = false;
}

BufferId Fsdp2Parameters::unsharded(std::uint32_t parameter) const {
    const Unit& unit = units_[rank_.unit_of(parameter)];
    return unit.is_unsharded ? unit.unsharded[rank_.position(parameter)] : no_buffer;
}

}  // namespace zeroplan
