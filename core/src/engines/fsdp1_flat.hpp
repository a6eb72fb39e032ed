#pragma once
#include <cstdint>
#include <vector>

#include "engines/parameter_storage.hpp"
#include "engines/torch_units.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// A flat parameter of FSDP1: the trained or the frozen parameters of a unit, each aligned, the end padded.
/// source: torch/distributed/fsdp/_flat_param.py (PyTorch 2.6)
struct FlatParameter {
    std::uint32_t unit = 0;
    std::vector<PlacedParameter> parameters;
    std::uint64_t numel = 0;
    std::uint64_t padded = 0;  ///< to a multiple of the ranks
    std::uint64_t shard = 0;   ///< elements of one rank
    bool trainable = true;
    StoredAs stored, gathered_as;        ///< resident, and while in use
    std::uint64_t statistics_bytes = 0;  ///< of quantised weights; every rank keeps all of them

    /// A buffer of its unit.
    Buffer buffer(BufferRole role, Category category, DType dtype, std::uint64_t elements) const {
        return {.role = role, .category = category, .dtype = dtype, .owner = unit, .elements = elements};
    }
};

/// Every unit's flat parameters, the frozen ones first; parameters that are stored unlike don't share one.
std::vector<FlatParameter> flat_parameters(const Scenario& scenario, const TorchUnits& units);

ShardLayout fsdp1_layout(const std::vector<FlatParameter>& flats, const TorchUnits& units,
                         std::uint64_t ranks);

}  // namespace zeroplan
