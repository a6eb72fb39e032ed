#include "engines/fsdp1_flat.hpp"

#include <utility>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t alignment_bytes = 16;

/// What parameters of one flat parameter have in common.
struct Kind {
    bool trainable, packed;
};

FlatParameter flatten(const Scenario& scenario, std::uint32_t unit,
                      const std::vector<std::uint32_t>& parameters, Kind kind) {
    const DType compute = storage_dtype(scenario.training.compute_dtype);
    FlatParameter flat{.unit = unit, .parameters = {}, .trainable = kind.trainable};
    const std::uint64_t alignment = alignment_bytes / bytes_per_element(compute);
    for (const std::uint32_t p : parameters) {
        const Parameter& parameter = scenario.model.parameters[p];
        const StoredAs stored = stored_as(parameter, scenario.training.parameter_dtype);
        if (parameter.trainable != kind.trainable || stored.packed != kind.packed) continue;
        flat.stored = stored;
        const std::uint64_t offset = round_up(flat.numel, alignment);
        flat.parameters.push_back({p, offset});
        flat.numel = offset + parameter.numel;
        flat.statistics_bytes += statistics_bytes(parameter);
    }
    flat.gathered_as = kind.packed ? flat.stored : StoredAs{compute};
    flat.padded = round_up(flat.numel, scenario.training.shard_group);
    flat.shard = flat.padded / scenario.training.shard_group;
    return flat;
}

}  // namespace

std::vector<FlatParameter> flat_parameters(const Scenario& scenario, const TorchUnits& units) {
    std::vector<FlatParameter> flats;
    for (std::uint32_t u = 0; u < units.units.size(); ++u)
        for (const Kind kind : {Kind{false, false}, Kind{false, true}, Kind{true, false}}) {
            FlatParameter flat = flatten(scenario, u, units.units[u].parameters, kind);
            if (!flat.parameters.empty()) flats.push_back(std::move(flat));
        }
    return flats;
}

ShardLayout fsdp1_layout(const std::vector<FlatParameter>& flats, const TorchUnits& units,
                         std::uint64_t ranks) {
    ShardLayout layout{.shard_group = ranks, .units = {}};
    for (const TorchUnit& unit : units.units)
        layout.units.push_back({.name = unit.name, .block = 0, .parameters = {}, .also_gathers = {}});
    for (const FlatParameter& flat : flats) {
        UnitLayout& entry = layout.units[flat.unit];
        for (const PlacedParameter& placed : flat.parameters)
            entry.parameters.push_back({placed.parameter, entry.padded_numel + placed.offset});
        entry.numel += flat.numel;
        entry.padded_numel += flat.padded;
    }
    return layout;
}

}  // namespace zeroplan
