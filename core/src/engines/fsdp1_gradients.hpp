#pragma once
#include <vector>

#include "engines/fsdp1_flat.hpp"
#include "engines/pending_sums.hpp"
#include "engines/process_group.hpp"
#include "engines/program_builder.hpp"
#include "engines/torch_step.hpp"

namespace zeroplan {

/// FSDP1's gradients, from autograd's to the shards that the optimizer reads.
/// source: torch/distributed/fsdp/_runtime_utils.py (_post_backward_hook) (PyTorch 2.6)
class Fsdp1Gradients {
public:
    Fsdp1Gradients(const Scenario& scenario, const std::vector<FlatParameter>& flats,
                   const std::vector<std::size_t>& flat_of_parameter, ProgramBuilder& builder,
                   ProcessGroup& shard_group);

    /// Gradients that are summed over micro-batches live between them.
    void allocate_resident();
    /// Whether the backward that begins reduces its gradients; under no_sync() it leaves them unsharded.
    void begin_backward(bool reduces) { reduces_ = reduces; }
    bool reduces() const { return reduces_; }

    /// Where autograd puts the gradient of a parameter. A tied weight's second use makes one of its own.
    BufferId gradient(std::uint32_t parameter);
    void add_second_contributions() { second_contributions_.add_up(builder_); }
    /// The parameters are views into the flat one: autograd joins their gradients into a flat gradient, and
    /// adds it to what micro-batches before have left unsharded.
    void join(std::uint32_t unit);
    /// Reduces the joined gradients.
    void reduce();
    /// Waits for the last reductions.
    void finish_reduction();

    /// Hands the reduced gradients to the optimizer.
    void give_to(TorchOptimizer& optimizer) const;
    /// Frees what the next step makes anew.
    void free_after_step();

private:
    /// What reductions of one unit still use.
    struct Reduced {
        std::vector<BufferId> buffers;
        std::vector<OperationId> after;
        bool uses(BufferId buffer) const;
    };
    struct Joined {
        std::size_t flat;
        BufferId gradient;
    };

    bool sharded() const { return training_.zero_stage > 0; }
    bool on_host() const { return training_.offload_parameters != OffloadTarget::none; }
    /// Reduced gradients are summed.
    bool accumulates() const {
        return training_.gradient_accumulation_steps > 1 &&
               training_.fsdp.gradient_sync != GradientSync::last;
    }
    BufferId allocate_shard(const FlatParameter& flat, DType dtype);
    BufferId join_flat(const FlatParameter& flat);
    BufferId add_to_unsharded(std::size_t flat, BufferId joined);
    void reduce_flat(const Joined& joined);
    BufferId cast_to_reduce(const FlatParameter& flat, BufferId joined, std::vector<OperationId> waits);
    BufferId reduce_scatter(const FlatParameter& flat, BufferId input, std::vector<OperationId> waits);
    void keep(std::size_t flat, BufferId output);
    void free_reduced(Reduced& reduced);

    const ModelSpec& model_;
    const TrainingConfig& training_;
    const std::vector<FlatParameter>& flats_;
    const std::vector<std::size_t>& flat_of_;
    ProgramBuilder& builder_;
    ProcessGroup& shard_group_;
    std::uint64_t replicas_;
    DType compute_;
    std::vector<BufferId> sharded_;    ///< by flat parameter
    std::vector<BufferId> unsharded_;  ///< likewise: sums of micro-batches that weren't reduced
    std::vector<BufferId> gradients_;  ///< by parameter, while backward runs
    PendingSums second_contributions_;
    std::vector<Joined> joined_;
    Reduced last_reduced_, before_last_;
    bool reduces_ = true;
};

}  // namespace zeroplan
