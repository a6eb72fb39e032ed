#pragma once
#include <vector>

#include "engines/fsdp2_rank.hpp"
#include "engines/pending_sums.hpp"
#include "engines/process_group.hpp"
#include "engines/program_builder.hpp"
#include "engines/torch_step.hpp"

namespace zeroplan {

/// FSDP2's gradients, from autograd's unsharded ones to the shards that the optimizer reads.
/// source: torch/distributed/fsdp/_fully_shard: _fsdp_collectives.py (foreach_reduce), _fsdp_param_group.py
/// (post_backward) (PyTorch 2.6)
class Fsdp2Gradients {
public:
    Fsdp2Gradients(const Fsdp2Rank& rank, ProgramBuilder& builder, ProcessGroup& shard_group)
        : rank_(rank), builder_(builder), shard_group_(shard_group), units_(rank.unit_count()) {}

    /// Gradients that are summed over micro-batches live between them.
    void allocate_resident();
    /// Whether the backward that begins reduces its gradients.
    void begin_backward(bool reduces) { reduces_ = reduces; }
    bool reduces() const { return reduces_; }

    /// Where autograd puts the gradient of a parameter. A tied weight's second use makes one of its own.
    BufferId gradient(std::uint32_t parameter);
    void add_second_contributions() { second_contributions_.add_up(builder_); }
    /// Reduces a unit's gradients once its backward has run, or sums them.
    void post_backward(UnitIndex u);
    /// Waits for the last reduction.
    void finish_reduction();

    /// Hands the reduced gradients to the optimizer.
    void give_to(TorchOptimizer& optimizer) const;
    /// Frees what the next step makes anew.
    void free_after_step();

private:
    struct Unit {
        std::vector<BufferId> gradients;  ///< by position, while backward runs
        std::vector<BufferId> summed;     ///< by position: unsharded sums over micro-batches
        BufferId sharded = no_buffer;
    };

    void allocate_sums(UnitIndex u);
    void sum_gradients(UnitIndex u);
    BufferId copy_to_reduce(UnitIndex u);
    void reduce_scatter(UnitIndex u, BufferId input);
    void keep(UnitIndex u, BufferId output);
    BufferId allocate_sharded(UnitIndex u, DType dtype);

    const Fsdp2Rank& rank_;
    ProgramBuilder& builder_;
    ProcessGroup& shard_group_;
    std::vector<Unit> units_;
    PendingSums second_contributions_;
    std::vector<BufferId> reduction_inputs_;
    std::vector<OperationId> reduced_;
    bool reduces_ = true;
};

}  // namespace zeroplan
