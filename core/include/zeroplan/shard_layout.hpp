#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/model_spec.hpp"

namespace zeroplan {

/// Elements [begin, end) of a flat buffer or of a parameter.
struct ElementRange {
    std::uint64_t begin = 0, end = 0;
    std::uint64_t size() const { return end - begin; }
    friend bool operator==(const ElementRange&, const ElementRange&) = default;
};

/// One parameter inside a unit's flat buffer.
struct PlacedParameter {
    std::uint32_t parameter = 0;  ///< index into ModelSpec::parameters
    std::uint64_t offset = 0;     ///< elements from the buffer's start
    friend bool operator==(const PlacedParameter&, const PlacedParameter&) = default;
};

/// A unit's flat buffer: parameters in registration order, the end padded; rank r owns slice r.
struct UnitLayout {
    std::string name;
    std::uint32_t block = 0;  ///< index into ModelSpec::blocks
    std::vector<PlacedParameter> parameters;
    std::uint64_t numel = 0, padded_numel = 0;  ///< without and with padding
    std::vector<std::uint32_t>
        also_gathers;  ///< other units whose buffer this unit's block reads (tied weights)
    friend bool operator==(const UnitLayout&, const UnitLayout&) = default;
};

/// Who owns which elements. Shards of a unit are disjoint and cover [0, padded_numel).
struct ShardLayout {
    std::uint64_t shard_group = 1;  ///< ranks that share one copy
    std::vector<UnitLayout> units;
    friend bool operator==(const ShardLayout&, const ShardLayout&) = default;

    std::uint64_t slice_numel(std::uint32_t unit) const { return units[unit].padded_numel / shard_group; }
    /// Elements of the unit's flat buffer that group rank `rank` owns.
    ElementRange slice(std::uint32_t unit, std::uint64_t rank) const {
        const std::uint64_t n = slice_numel(unit);
        return {rank * n, (rank + 1) * n};
    }
};

}  // namespace zeroplan
