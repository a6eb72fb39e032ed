#include "engines/activation_walk.hpp"

namespace zeroplan {

void ActivationWalk::recompute(std::uint32_t block, const Hooks& hooks, bool holds_output) {
    if (!reentrant_checkpoints_) return recompute_block(block, hooks);
    const BlockKind& kind = kind_of(block);
    Counts users = future_users(block, true);
    if (holds_output) ++users[kind.output];
    run_forward(block, ComputePhase::recompute, users, hooks);
    live_.release(tensors_[block][0]);
    if (kind.context_tensor) live_.release(tensors_[block][*kind.context_tensor]);
}

/// What was kept is read as it is; everything else that backward reads is made again.
void ActivationWalk::recompute_block(std::uint32_t block, const Hooks& hooks) {
    const BlockKind& kind = kind_of(block);
    Counts users(kind.tensors.size(), 0);
    for (std::uint32_t op = 0; op < kind.operators.size(); ++op) {
        if (runs_again(block, op))
            for (const std::uint32_t tensor : kind.operators[op].inputs) ++users[tensor];
        for (const std::uint32_t tensor : kind.operators[op].saved) ++users[tensor];
    }
    const Instances& tensors = tensors_[block];
    for (std::uint32_t tensor = 0; tensor < users.size(); ++tensor)
        if (is_kept(block, tensor)) live_.use(tensors[tensor], users[tensor]);
    use_inputs(block, users);
    for (std::uint32_t op = 0; op < kind.operators.size(); ++op)
        if (runs_again(block, op)) run_forward_operator(block, op, ComputePhase::recompute, users, hooks);
    for (std::uint32_t tensor = 0; tensor < users.size(); ++tensor)
        if (is_kept(block, tensor)) live_.release(tensors[tensor]);  // held since forward
    live_.release(tensors[0]);
    if (kind.context_tensor) live_.release(tensors[*kind.context_tensor]);
}

void ActivationWalk::recompute_attention_core(std::uint32_t block, const Hooks& hooks) {
    const BlockKind& kind = kind_of(block);
    Counts users(kind.tensors.size(), 0);
    for (const Operator& op : kind.operators) {
        if (op.attention_core)
            for (const std::uint32_t tensor : op.inputs) ++users[tensor];
        for (const std::uint32_t tensor : op.saved)
            if (is_dropped(block, tensor)) ++users[tensor];
    }
    const std::vector<std::uint32_t> inputs = attention_core_inputs(kind);
    for (const std::uint32_t tensor : inputs) live_.use(tensors_[block][tensor], users[tensor]);
    for (std::uint32_t op = 0; op < kind.operators.size(); ++op)
        if (kind.operators[op].attention_core)
            run_forward_operator(block, op, ComputePhase::recompute, users, hooks);
    for (const std::uint32_t tensor : inputs) live_.release(tensors_[block][tensor]);  // held since forward
}

}  // namespace zeroplan
