#include "engines/native_layout.hpp"

#include <algorithm>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t slice_alignment = 8;  // elements: 16 bytes of a 16-bit dtype

UnitLayout lay_out(const ModelSpec& model, std::uint32_t block, std::uint64_t shard_group,
                   const std::vector<std::uint32_t>& unit_of) {
    UnitLayout unit{.name = model.blocks[block].name, .block = block};
    for (const std::uint32_t index : model.blocks[block].parameters) {
        const Parameter& parameter = model.parameters[index];
        if (!parameter.shared_with) {
            unit.parameters.push_back({index, unit.numel});
            unit.numel = checked_sum(unit.numel, parameter.numel);
        } else if (unit_of[index] != block && std::find(unit.also_gathers.begin(), unit.also_gathers.end(),
                                                        unit_of[index]) == unit.also_gathers.end()) {
            unit.also_gathers.push_back(unit_of[index]);
        }
    }
    unit.padded_numel = round_up(unit.numel, checked_product(slice_alignment, shard_group));
    return unit;
}

}  // namespace

ShardLayout native_layout(const ModelSpec& model, std::uint64_t shard_group) {
    ShardLayout layout{.shard_group = shard_group};
    const std::vector<std::uint32_t> unit_of = units_of_parameters(model);
    for (std::uint32_t block = 0; block < model.blocks.size(); ++block)
        layout.units.push_back(lay_out(model, block, shard_group, unit_of));
    return layout;
}

std::vector<std::uint32_t> units_of_parameters(const ModelSpec& model) {
    std::vector<std::uint32_t> unit_of(model.parameters.size(), 0);
    for (std::uint32_t block = 0; block < model.blocks.size(); ++block)
        for (const std::uint32_t index : model.blocks[block].parameters) unit_of[index] = block;
    for (std::size_t i = 0; i < unit_of.size(); ++i)
        if (const auto owner = model.parameters[i].shared_with) unit_of[i] = unit_of[*owner];
    return unit_of;
}

}  // namespace zeroplan
