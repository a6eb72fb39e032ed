#include "engines/torch_units.hpp"

#include <algorithm>

namespace zeroplan {

std::uint32_t owner_of(const ModelSpec& model, std::uint32_t parameter) {
    return model.parameters[parameter].shared_with.value_or(parameter);
}

std::vector<std::uint32_t> parameter_owners(const ModelSpec& model) {
    std::vector<std::uint32_t> owners(model.parameters.size());
    for (std::uint32_t p = 0; p < owners.size(); ++p) owners[p] = owner_of(model, p);
    return owners;
}

std::vector<std::uint32_t> units_read_by(const ModelSpec& model, const TorchUnits& units,
                                         std::uint32_t block) {
    std::vector<std::uint32_t> result{units.unit_of_block[block]};
    for (const std::uint32_t p : model.blocks[block].parameters) {
        const std::uint32_t u = units.unit_of_parameter[p];
        if (std::find(result.begin(), result.end(), u) == result.end()) result.push_back(u);
    }
    return result;
}

TorchUnits torch_units(const ModelSpec& model, const std::string& wrap) {
    TorchUnits result{.units = {{.name = "root", .parameters = {}, .is_root = true}},
                      .unit_of_block = std::vector<std::uint32_t>(model.blocks.size(), 0),
                      .unit_of_parameter = std::vector<std::uint32_t>(model.parameters.size(), 0)};
    const bool has_layers = std::any_of(model.blocks.begin(), model.blocks.end(), [&](const Block& block) {
        return model.block_kinds[block.kind].is_layer;
    });
    for (std::uint32_t b = 0; b < model.blocks.size(); ++b) {
        const Block& block = model.blocks[b];
        const bool layer = model.block_kinds[block.kind].is_layer || !has_layers;
        const bool own_unit = wrap != "root" && (layer || wrap == "layer+embedding+output");
        if (own_unit) {
            result.unit_of_block[b] = static_cast<std::uint32_t>(result.units.size());
            result.units.push_back({.name = block.name, .parameters = {}, .is_root = false});
        }
        const std::uint32_t unit = result.unit_of_block[b];
        for (const std::uint32_t p : block.parameters) {
            result.unit_of_parameter[p] = unit;
            if (model.parameters[p].shared_with) continue;
            result.units[unit].parameters.push_back(p);
        }
    }
    for (std::uint32_t p = 0; p < model.parameters.size(); ++p)
        result.unit_of_parameter[p] = result.unit_of_parameter[owner_of(model, p)];
    return result;
}

}  // namespace zeroplan
