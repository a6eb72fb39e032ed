#include "engines/operator_issue.hpp"

#include <utility>

namespace zeroplan {
namespace {

/// Kernels that take the engine's shared workspace.
bool uses_matrix_library(OperatorKind kind) {
    return kind == OperatorKind::linear || kind == OperatorKind::attention_scores ||
           kind == OperatorKind::attention_values;
}

}  // namespace

Collective OperatorIssue::to_operation(const OperatorCollective& collective) const {
    return {.kind = collective.kind,
            .group = collective.group,
            .send = {},
            .receive = {},
            .dtype = resolve(collective.dtype, storage_dtype(training_.compute_dtype)),
            .elements = elements(collective.extent, training_.micro_batch_size, training_.sequence_length)};
}

void OperatorIssue::issue_collectives(const Operator& op, CollectiveMoment moment) {
    for (const OperatorCollective& collective : op.collectives)
        if (collective.moment == moment && !collective.overlapped)
            builder_.on_stream(Stream::compute, to_operation(collective), std::move(pending_waits_));
}

/// They start with the operator: what a module overlaps it cuts into pieces, or runs beside the other half of
/// a backward product.
void OperatorIssue::issue_overlapped(const Operator& op, bool backward) {
    for (const OperatorCollective& collective : op.collectives) {
        const bool of_backward = collective.moment == CollectiveMoment::before_backward ||
                                 collective.moment == CollectiveMoment::after_backward;
        if (!collective.overlapped || of_backward != backward) continue;
        std::vector<OperationId> waits = builder_.last(Stream::compute);
        waits.insert(waits.end(), pending_waits_.begin(), pending_waits_.end());
        overlapped_.push_back(
            builder_.on_stream(Stream::exchange, to_operation(collective), std::move(waits)));
        overlapped_in_ = builder_.section_number();
    }
}

void OperatorIssue::add_overlapped_waits() {
    if (overlapped_in_ == builder_.section_number())
        pending_waits_.insert(pending_waits_.end(), overlapped_.begin(), overlapped_.end());
    overlapped_.clear();
}

BufferId OperatorIssue::allocate_temporary(const Extent& extent, std::uint32_t block) {
    const std::uint64_t numel = elements(extent, training_.micro_batch_size, training_.sequence_length);
    if (numel == 0) return no_buffer;
    return builder_.allocate({.role = BufferRole::workspace,
                              .category = Category::temporaries,
                              .dtype = storage_dtype(training_.compute_dtype),
                              .owner = block,
                              .elements = numel});
}

void OperatorIssue::issue(Compute compute, const Operator& op, const Extent& temporary,
                          const WalkHooks& hooks) {
    const ComputePhase phase = compute.phase;
    const std::uint32_t block = compute.block;
    if (hooks.before) hooks.before(phase, block, op);
    if (workspace_ != no_buffer && uses_matrix_library(op.kind))
        compute.arguments.push_back({ArgumentRole::workspace, 0, workspace_});
    const BufferId own = allocate_temporary(temporary, block);
    if (own != no_buffer) compute.arguments.push_back({ArgumentRole::workspace, 1, own});
    if (hooks.waits)
        for (const OperationId id : hooks.waits()) pending_waits_.push_back(id);
    const bool backward = phase == ComputePhase::backward;
    add_overlapped_waits();
    issue_collectives(op, backward ? CollectiveMoment::before_backward : CollectiveMoment::before_forward);
    issue_overlapped(op, backward);
    builder_.on_stream(Stream::compute, std::move(compute), std::move(pending_waits_));
    pending_waits_.clear();
    issue_collectives(op, backward ? CollectiveMoment::after_backward : CollectiveMoment::after_forward);
    if (own != no_buffer) builder_.free(own);
    if (hooks.after) hooks.after(phase, block, op);
}

}  // namespace zeroplan
