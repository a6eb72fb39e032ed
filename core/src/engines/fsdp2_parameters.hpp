#pragma once
#include <vector>

#include "engines/fsdp2_rank.hpp"
#include "engines/process_group.hpp"
#include "engines/program_builder.hpp"
#include "engines/torch_step.hpp"

namespace zeroplan {

/// Where FSDP2's parameters are: sharded between their uses, gathered unit by unit while a block runs.
/// source: torch/distributed/fsdp/_fully_shard: _fsdp_param.py, _fsdp_collectives.py, _fsdp_param_group.py
/// (PyTorch 2.6)
class Fsdp2Parameters {
public:
    Fsdp2Parameters(const Fsdp2Rank& rank, ProgramBuilder& builder, ProcessGroup& shard_group)
        : rank_(rank), builder_(builder), shard_group_(shard_group), units_(rank.unit_count()) {}

    /// Allocates this rank's shards and says to `optimizer` which it trains.
    void load(TorchOptimizer& optimizer);

    void unshard_for_forward(UnitIndex u);
    /// Gives up the last unit's gather buffer, which nothing behind it replaces.
    void flush_forward_gather();
    void unshard_for_backward(UnitIndex u);
    /// Gathers ahead of unshard_for_backward().
    void prefetch(UnitIndex u);
    void reshard_after_forward(UnitIndex u);
    void reshard(UnitIndex u);

    /// The whole parameter; no_buffer while it isn't gathered.
    BufferId unsharded(std::uint32_t parameter) const;

private:
    struct Unit {
        std::vector<BufferId> unsharded;    ///< by position, while gathered
        BufferId post_forward = no_buffer;  ///< the smaller group's shard between forward and backward
        BufferId gathering = no_buffer;     ///< the all-gather's buffer, until it is copied out
        std::vector<OperationId> gathered;
        bool is_unsharded = false;
    };
    struct GatherSize {
        DType dtype;
        std::uint64_t elements;  ///< of all ranks
    };

    void load_unit(UnitIndex u, TorchOptimizer& optimizer);
    GatherSize gather_size(UnitIndex u) const;
    std::vector<BufferId> copies_to_gather(UnitIndex u);
    void bring_to_device(UnitIndex u);
    void all_gather(UnitIndex u);
    void copy_out(UnitIndex u);

    const Fsdp2Rank& rank_;
    ProgramBuilder& builder_;
    ProcessGroup& shard_group_;
    std::vector<Unit> units_;
    BufferId forward_gather_ = no_buffer;
    std::vector<OperationId> forward_gather_copied_;
};

}  // namespace zeroplan
