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

std::optional<std::size_t> ActivationWalk::segment_of(std::uint32_t block, std::uint32_t tensor) const {
    const RecomputeSegments& segments = segments_of(block);
    for (std::size_t s = 0; s < segments.size(); ++s)
        if (segments[s].made[tensor]) return s;
    return std::nullopt;
}

void ActivationWalk::recompute_segment(std::uint32_t block, std::size_t number, const Hooks& hooks) {
    if (ran_again_[number]) return;
    ran_again_[number] = true;
    const BlockKind& kind = kind_of(block);
    const RecomputeSegment& segment = segments_of(block)[number];
    for (const std::uint32_t tensor : segment.inputs)
        if (const auto maker = segment_of(block, tensor)) recompute_segment(block, *maker, hooks);
    Counts users(kind.tensors.size(), 0);
    for (std::size_t op = 0; op < kind.operators.size(); ++op) {
        if (segment.operators[op])
            for (const std::uint32_t tensor : kind.operators[op].inputs) ++users[tensor];
        for (const std::uint32_t tensor : kind.operators[op].saved)
            if (segment.made[tensor]) ++users[tensor];
    }
    for (const RecomputeSegment& other : segments_of(block))
        for (const std::uint32_t tensor : other.inputs)
            if (segment.made[tensor]) ++users[tensor];
    for (const std::uint32_t tensor : segment.inputs) live_.use(tensors_[block][tensor], users[tensor]);
    for (std::uint32_t op = 0; op < kind.operators.size(); ++op)
        if (segment.operators[op]) run_forward_operator(block, op, ComputePhase::recompute, users, hooks);
    for (const std::uint32_t tensor : segment.inputs)
        live_.release(tensors_[block][tensor]);  // held for this since it was made
}

}  // namespace zeroplan
