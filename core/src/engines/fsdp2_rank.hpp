#pragma once
#include <cstdint>
#include <vector>

#include "engines/fsdp2_layout.hpp"
#include "engines/parameter_storage.hpp"
#include "engines/torch_units.hpp"
#include "zeroplan/scenario.hpp"
#include "zeroplan/step_program.hpp"

namespace zeroplan {

/// Index into TorchUnits::units.
using UnitIndex = std::uint32_t;

/// One rank of FSDP2 and what the scenario asks of it; nothing in it changes while its step is written down.
/// source: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py (PyTorch 2.6)
class Fsdp2Rank {
public:
    /// `pipelined`: the scenario is one pipeline stage's part.
    Fsdp2Rank(const Scenario& scenario, const TorchUnits& units, std::uint64_t rank, bool pipelined);

    const ModelSpec& model() const { return model_; }
    const TrainingConfig& training() const { return training_; }
    const ClusterSpec& cluster() const { return cluster_; }
    const TorchUnits& units() const { return units_; }
    std::uint64_t ranks() const { return ranks_; }  ///< of the shard group
    std::uint64_t replicas() const { return replicas_; }
    DType compute_dtype() const { return compute_; }
    bool pipelined() const { return pipelined_; }

    bool on_host() const { return training_.offload_parameters != OffloadTarget::none; }
    std::uint64_t micro_batches() const { return training_.gradient_accumulation_steps; }
    /// Gradients are summed before they are reduced: a pipeline reduces after a stage's last micro-batch.
    bool sums_unsharded() const {
        return micro_batches() > 1 && (pipelined_ || training_.fsdp.gradient_sync == GradientSync::last);
    }
    /// Reduced gradients are summed.
    bool accumulates() const { return micro_batches() > 1 && !sums_unsharded(); }

    UnitIndex unit_count() const { return static_cast<UnitIndex>(units_.units.size()); }
    const TorchUnit& unit(UnitIndex u) const { return units_.units[u]; }
    bool empty(UnitIndex u) const { return unit(u).parameters.empty(); }
    UnitIndex unit_of(std::uint32_t parameter) const { return units_.unit_of_parameter[parameter]; }
    /// A parameter's place in its unit.
    std::uint32_t position(std::uint32_t parameter) const { return position_[parameter]; }
    /// The last unit that runs is left gathered, as trainers ask for: backward would gather it again at once.
    bool reshards_after_forward(UnitIndex u) const {
        return training_.zero_stage == 3 && !unit(u).is_root && u + 1 != unit_count();
    }
    /// Ranks of the smaller group that holds parameters between forward and backward; 0: there is none. The
    /// whole group is not a smaller one. source: _fsdp_init.py (_get_post_forward_mesh_info)
    std::uint64_t second_group() const {
        const auto asked = static_cast<std::uint64_t>(training_.fsdp.reshard_after_forward.value_or(1));
        return asked > 1 && asked < ranks_ ? asked : 0;
    }

    /// This rank's part of a parameter.
    RowShard shard(std::uint32_t parameter) const;
    /// Elements that every rank stores of a parameter, of a unit's, and of its trained ones.
    std::uint64_t padded(std::uint32_t parameter) const { return padded_[parameter]; }
    std::uint64_t unit_padded(UnitIndex u) const { return unit_padded_[u]; }
    std::uint64_t unit_trained(UnitIndex u) const { return unit_trained_[u]; }
    StoredAs stored(std::uint32_t parameter) const;
    /// As it travels and is used. With fp8 all-gather the weights of a layer's linears travel and stay in
    /// fp8; the output layer's don't. Quantised weights travel as they are stored.
    StoredAs gathered(std::uint32_t parameter) const;

    /// A buffer of unit `u`; `position`: 1 + a parameter's place in it, 0 for the whole unit.
    Buffer buffer(BufferRole role, Category category, DType dtype, UnitIndex u, std::uint64_t elements,
                  std::size_t position = 0) const;

private:
    const ModelSpec& model_;
    const TrainingConfig& training_;
    const ClusterSpec& cluster_;
    const TorchUnits& units_;
    std::uint64_t ranks_, rank_, replicas_;
    DType compute_;
    bool pipelined_, gathers_fp8_;
    std::vector<std::uint32_t> position_;  ///< by parameter
    std::vector<std::uint64_t> padded_;    ///< likewise
    std::vector<std::uint64_t> unit_padded_, unit_trained_;
};

}  // namespace zeroplan
