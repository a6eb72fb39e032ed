#pragma once
#include <cstdint>
#include <vector>

#include "engines/program_builder.hpp"
#include "zeroplan/scenario.hpp"
#include "zeroplan/shard_layout.hpp"

namespace zeroplan {

/// One rank of our own engine: its layout, what the scenario asks of it, and the buffers of every unit.
struct NativeRank {
    /// A unit's resident buffers.
    struct Unit {
        BufferId parameters = no_buffer, gradients = no_buffer, master = no_buffer, momentum = no_buffer,
                 variance = no_buffer;
        BufferId gathered = no_buffer;     ///< live copy of the whole unit at stage 3
        std::vector<OperationId> gather;   ///< the operation that fills it, if issued in this section
        std::vector<OperationId> reduced;  ///< the last operation that changes the unit's gradients
    };
    using UnitIndex = std::uint32_t;

    NativeRank(const Scenario& scenario, const ShardLayout& shards)
        : model(scenario.model),
          training(scenario.training),
          layout(shards),
          replicas(scenario.training.data_parallel / shards.shard_group),
          units(shards.units.size()) {}

    std::uint32_t stage() const { return training.zero_stage; }
    UnitIndex unit_count() const { return static_cast<UnitIndex>(units.size()); }
    bool empty(UnitIndex unit) const { return whole(unit) == 0; }
    std::uint64_t whole(UnitIndex unit) const { return layout.units[unit].padded_numel; }
    std::uint64_t owned(UnitIndex unit) const {
        return stage() >= 1 ? layout.slice_numel(unit) : whole(unit);
    }
    /// Units whose flat buffers the block of `unit` reads: its own and those of its tied weights.
    std::vector<UnitIndex> needed_units(UnitIndex unit) const {
        std::vector<UnitIndex> needed{unit};
        const auto& tied = layout.units[unit].also_gathers;
        needed.insert(needed.end(), tied.begin(), tied.end());
        return needed;
    }
    static Buffer buffer(BufferRole role, Category category, DType dtype, UnitIndex unit,
                         std::uint64_t numel) {
        return {.role = role, .category = category, .dtype = dtype, .owner = unit, .elements = numel};
    }
    /// Gathers a unit's slices into the whole.
    Collective all_gather(UnitIndex unit, DType dtype, Operand slice, BufferId into) const {
        return {.kind = CollectiveKind::all_gather,
                .group = GroupKind::shard_group,
                .send = slice,
                .receive = {into, false},
                .dtype = dtype,
                .elements = whole(unit),
                .unit = unit};
    }

    const ModelSpec& model;
    const TrainingConfig& training;
    const ShardLayout& layout;
    std::uint64_t replicas;
    std::vector<Unit> units;
};

}  // namespace zeroplan
