#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "engines/program_builder.hpp"
#include "engines/torch_step.hpp"
#include "engines/torch_units.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// Every parameter, whole and a tensor of its own; under autocast with the casts that products make.
class DdpParameters {
public:
    DdpParameters(const Scenario& scenario, const TorchUnits& units, ProgramBuilder& builder);

    /// Allocates them and says to `optimizer` which ones this rank trains: those that `owned` names.
    void load(TorchOptimizer& optimizer, const std::function<bool(std::uint32_t)>& owned);

    /// A tensor of a parameter's size.
    Buffer buffer(BufferRole role, Category category, DType dtype, std::uint32_t parameter) const;
    std::uint32_t unit(std::uint32_t parameter) const { return tensors_[parameter].unit; }
    BufferId stored(std::uint32_t parameter) const { return tensors_[parameter].stored; }
    /// What an operator reads: autocast's copy, where there is one.
    BufferId values(std::uint32_t parameter) const {
        return is_cast(parameter) ? tensors_[parameter].cast : tensors_[parameter].stored;
    }
    bool is_cast(std::uint32_t parameter) const { return tensors_[parameter].cast != no_buffer; }

    /// Under autocast a product's weight is cast once, at its first use; forward keeps all casts until it
    /// leaves autocast, and autograd those of layers that don't run again (ATen/autocast_mode.cpp).
    void cast_weights(ComputePhase phase, std::uint32_t block, const Operator& op);
    void drop_cast(std::uint32_t parameter) { builder_.free_if_there(tensors_[parameter].cast); }

private:
    struct Tensors {
        BufferId stored = no_buffer, cast = no_buffer;
        std::uint32_t unit = 0, position = 0;
    };

    void load_parameter(std::uint32_t p, bool trained_here, TorchOptimizer& optimizer);

    const ModelSpec& model_;
    const TrainingConfig& training_;
    ProgramBuilder& builder_;
    bool autocast_;
    std::vector<Tensors> tensors_;  ///< by parameter
};

}  // namespace zeroplan
