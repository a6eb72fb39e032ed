#include "initial_values.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "convert.hpp"
#include "counter_random.hpp"

namespace zeroplan::runner {
namespace {

/// 1/√in of the linear that each parameter belongs to.
std::vector<float> uniform_bounds(const ModelSpec& model) {
    std::vector<float> bounds(model.parameters.size(), 0.0F);
    for (const Block& block : model.blocks)
        for (const Operator& op : model.block_kinds[block.kind].operators)
            for (const std::uint32_t position : op.parameters)
                if (op.kind == OperatorKind::linear && op.in_features != 0)
                    bounds[block.parameters[position]] =
                        static_cast<float>(1.0 / std::sqrt(static_cast<double>(op.in_features)));
    return bounds;
}

}  // namespace

InitialValues::InitialValues(const ModelSpec& model, std::uint64_t seed)
    : model_(model), seed_(seed), bounds_(uniform_bounds(model)) {}

void InitialValues::fill(std::uint32_t parameter, std::uint64_t begin, std::size_t n, float* to) const {
    const float bound = bounds_[parameter];
    for (std::size_t i = 0; i < n; ++i)
        to[i] = symmetric_uniform(random_bits(seed_, parameter, begin + i)) * bound;
}

void InitialValues::fill(const UnitLayout& unit, ElementRange range, void* to, DType dtype) const {
    std::array<float, 1024> tile;
    for (std::uint64_t at = range.begin; at < range.end; at += tile.size()) {
        const std::uint64_t end = std::min<std::uint64_t>(range.end, at + tile.size());
        tile.fill(0.0F);
        for (const PlacedParameter& placed : unit.parameters) {
            const std::uint64_t from = std::max(at, placed.offset);
            const std::uint64_t until =
                std::min(end, placed.offset + model_.parameters[placed.parameter].numel);
            if (from < until)
                fill(placed.parameter, from - placed.offset, until - from, tile.data() + (from - at));
        }
        narrow(tile.data(), element(to, dtype, at - range.begin), dtype, end - at);
    }
}

}  // namespace zeroplan::runner
