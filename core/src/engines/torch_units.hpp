#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "zeroplan/model_spec.hpp"

namespace zeroplan {

/// What one FSDP instance manages: whole parameters, gathered and freed together.
struct TorchUnit {
    std::string name;
    std::vector<std::uint32_t> parameters;  ///< indices into ModelSpec::parameters, no tied duplicates
    bool is_root = false;
    friend bool operator==(const TorchUnit&, const TorchUnit&) = default;
};

/// Units of a wrapping policy, the root first:
///   "layer"                   every transformer layer; the rest stays in the root
///   "layer+embedding+output"  the embedding and the last norm with the output layer are units as well
///   "root"                    one unit
/// Models without layers (plain stacks) have one unit a block under the first two.
struct TorchUnits {
    std::vector<TorchUnit> units;
    std::vector<std::uint32_t> unit_of_block;      ///< the unit that manages the block
    std::vector<std::uint32_t> unit_of_parameter;  ///< by parameter; of tied ones, their owner's
};
TorchUnits torch_units(const ModelSpec& model, const std::string& wrap);

/// Index of the parameter whose storage `parameter` is.
std::uint32_t owner_of(const ModelSpec& model, std::uint32_t parameter);
/// The same of every parameter.
std::vector<std::uint32_t> parameter_owners(const ModelSpec& model);

/// Units whose parameters a block reads: its own, and that of a tied weight.
std::vector<std::uint32_t> units_read_by(const ModelSpec& model, const TorchUnits& units,
                                         std::uint32_t block);

}  // namespace zeroplan
