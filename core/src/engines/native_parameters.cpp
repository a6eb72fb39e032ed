#include "engines/native_parameters.hpp"

namespace zeroplan {

void NativeParameters::gather_for(UnitIndex unit, UnitIndex next) {
    if (rank_.stage() != 3) return;
    for (const UnitIndex u : rank_.needed_units(unit)) gather(u);
    if (next < rank_.unit_count())
        for (const UnitIndex u : rank_.needed_units(next)) gather(u);
}

void NativeParameters::gather(UnitIndex unit) {
    NativeRank::Unit& state = rank_.units[unit];
    if (rank_.empty(unit) || state.gathered != no_buffer) return;
    const DType dtype = rank_.training.parameter_dtype;
    state.gathered = builder_.allocate(NativeRank::buffer(
        BufferRole::gathered_parameters, Category::gathered_parameters, dtype, unit, rank_.whole(unit)));
    state.gather = {builder_.on_stream(
        Stream::gather, rank_.all_gather(unit, dtype, {state.parameters, false}, state.gathered))};
}

std::vector<OperationId> NativeParameters::gather_events(UnitIndex unit) const {
    std::vector<OperationId> events;
    if (rank_.stage() != 3) return events;
    for (const UnitIndex u : rank_.needed_units(unit))
        events.insert(events.end(), rank_.units[u].gather.begin(), rank_.units[u].gather.end());
    return events;
}

void NativeParameters::release(UnitIndex unit) {
    if (rank_.stage() != 3) return;
    for (const UnitIndex u : rank_.needed_units(unit)) {
        NativeRank::Unit& state = rank_.units[u];
        if (state.gathered == no_buffer || is_prefetched_elsewhere(u, unit)) continue;
        builder_.free(state.gathered, builder_.last(Stream::compute));
        state.gathered = no_buffer;
        state.gather = {};
    }
}

/// True if a neighbour whose own buffer is live (prefetched for the next use) reads `unit` too.
bool NativeParameters::is_prefetched_elsewhere(UnitIndex unit, UnitIndex user) const {
    for (UnitIndex other = 0; other < rank_.unit_count(); ++other) {
        if (other == user || rank_.units[other].gathered == no_buffer) continue;
        for (const UnitIndex u : rank_.needed_units(other))
            if (u == unit && other != unit) return true;
    }
    return false;
}

}  // namespace zeroplan
