#pragma once
#include <cstdint>
#include <vector>

#include "engines/program_builder.hpp"
#include "engines/walk_hooks.hpp"
#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// Puts a walk's compute operations on their stream, with their temporaries and collectives around them.
class OperatorIssue {
public:
    /// `workspace`: the engine's shared one, which matrix products take; no_buffer: there is none.
    OperatorIssue(const TrainingConfig& training, ProgramBuilder& builder, BufferId workspace)
        : training_(training), builder_(builder), workspace_(workspace) {}

    /// What the next operation has to wait for.
    void wait_for(std::vector<OperationId> operations) { pending_waits_ = std::move(operations); }
    /// `temporary`: the size of the operator's own workspace.
    void issue(Compute compute, const Operator& op, const Extent& temporary, const WalkHooks& hooks);

private:
    BufferId allocate_temporary(const Extent& extent, std::uint32_t block);
    void add_overlapped_waits();
    /// Collectives of an operator at one moment: on the compute stream, or beside the operator.
    void issue_collectives(const Operator& op, CollectiveMoment moment);
    void issue_overlapped(const Operator& op, bool backward);
    Collective to_operation(const OperatorCollective& collective) const;

    const TrainingConfig& training_;
    ProgramBuilder& builder_;
    BufferId workspace_;
    std::vector<OperationId> pending_waits_;  ///< of the next compute operation
    std::vector<OperationId> overlapped_;     ///< collectives that the next compute operation waits for
    std::uint32_t overlapped_in_ = 0;         ///< section of overlapped_
};

}  // namespace zeroplan
