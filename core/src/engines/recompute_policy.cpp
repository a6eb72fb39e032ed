#include "engines/recompute_policy.hpp"

#include <algorithm>
#include <utility>

namespace zeroplan {
namespace {

RecomputeSegments attention_core(const BlockKind& kind) {
    std::vector<bool> operators;
    for (const Operator& op : kind.operators) operators.push_back(op.attention_core);
    RecomputeSegments segments;
    if (auto core = recompute_segment(kind, std::move(operators))) segments.push_back(std::move(*core));
    return segments;
}

/// Tensors of `kind` that torchtitan's per-operator policy keeps: every fused attention's outputs and the
/// outputs of every second matrix product without bias, beginning with the first (torchtitan
/// parallelize_llama.py, _get_custom_policy: aten.mm, and not aten.addmm, stands in its list).
std::vector<bool> outputs_kept_by_policy(const BlockKind& kind) {
    std::vector<bool> kept(kind.tensors.size(), false);
    std::uint64_t products = 0;
    for (const Operator& op : kind.operators) {
        const bool product = op.kind == OperatorKind::linear && op.parameters.size() == 1;
        if (product) ++products;
        if (op.kind == OperatorKind::attention || (product && products % 2 == 1))
            for (const std::uint32_t tensor : op.outputs) kept[tensor] = true;
    }
    return kept;
}

/// Operators that running a block again has to run: those whose outputs backward reads, or that lead to
/// them. The rest is left out, as torch.utils.checkpoint stops early.
std::vector<bool> operators_wanted_again(const BlockKind& kind, const std::vector<bool>& kept) {
    std::vector<bool> needed(kind.tensors.size(), false), wanted(kind.operators.size(), false);
    for (const Operator& op : kind.operators)
        for (const std::uint32_t tensor : op.saved) needed[tensor] = true;
    for (std::size_t o = kind.operators.size(); o-- > 0;) {
        const Operator& op = kind.operators[o];
        wanted[o] = std::any_of(op.outputs.begin(), op.outputs.end(),
                                [&](std::uint32_t t) { return needed[t] && !kept[t]; });
        if (wanted[o])
            for (const std::uint32_t tensor : op.inputs) needed[tensor] = true;
    }
    return wanted;
}

/// torch.compile saves what backward needs and no more, whatever the policy asks to keep: a kept tensor goes
/// that neither backward nor an operator that runs again reads.
void forget_unread(const BlockKind& kind, std::vector<bool>& kept) {
    const std::vector<bool> again = operators_wanted_again(kind, kept);
    std::vector<bool> read(kind.tensors.size(), false);
    for (std::size_t o = 0; o < kind.operators.size(); ++o) {
        for (const std::uint32_t tensor : kind.operators[o].saved) read[tensor] = true;
        if (!again[o]) continue;
        for (const std::uint32_t tensor : kind.operators[o].inputs) read[tensor] = true;
    }
    for (std::size_t t = 0; t < kept.size(); ++t) kept[t] = kept[t] && read[t];
}

/// Which blocks run again in backward: transformer layers, all of them or every k-th.
std::vector<bool> checkpointed_blocks(const ModelSpec& model, const TrainingConfig& training) {
    std::vector<bool> result(model.blocks.size(), false);
    std::uint64_t layer = 0;
    for (std::size_t b = 0; b < model.blocks.size(); ++b) {
        if (!model.block_kinds[model.blocks[b].kind].is_layer) continue;
        result[b] =
            training.recompute == Recompute::full || training.recompute == Recompute::selective_op ||
            (training.recompute == Recompute::selective_layer && layer % training.recompute_every == 0);
        ++layer;
    }
    return result;
}

}  // namespace

std::optional<RecomputeSegment> recompute_segment(const BlockKind& kind, std::vector<bool> operators) {
    RecomputeSegment segment{.operators = std::move(operators),
                             .made = std::vector<bool>(kind.tensors.size(), false),
                             .inputs = {}};
    for (std::size_t o = 0; o < kind.operators.size(); ++o)
        if (segment.operators[o])
            for (const std::uint32_t tensor : kind.operators[o].outputs) segment.made[tensor] = true;
    const auto is_made = [&](std::uint32_t tensor) { return segment.made[tensor]; };
    bool is_read = false;
    for (std::size_t o = 0; o < kind.operators.size(); ++o) {
        const Operator& op = kind.operators[o];
        is_read = is_read || std::any_of(op.saved.begin(), op.saved.end(), is_made);
        if (!segment.operators[o]) continue;
        for (const std::uint32_t tensor : op.inputs)
            if (!is_made(tensor) &&
                std::find(segment.inputs.begin(), segment.inputs.end(), tensor) == segment.inputs.end())
                segment.inputs.push_back(tensor);
    }
    if (!is_read) return std::nullopt;
    return segment;
}

RecomputePolicy recompute_policy(const ModelSpec& model, const TrainingConfig& training) {
    RecomputePolicy policy{
        .checkpointed = checkpointed_blocks(model, training), .segments = {}, .kept = {}, .wanted = {}};
    for (const BlockKind& kind : model.block_kinds) {
        const std::vector<bool> nothing(kind.tensors.size(), false);
        const auto asks = [&](Recompute level) { return training.recompute == level && kind.is_layer; };
        policy.segments.push_back(asks(Recompute::selective) ? attention_core(kind) : RecomputeSegments{});
        policy.kept.push_back(asks(Recompute::selective_op) ? outputs_kept_by_policy(kind) : nothing);
        if (training.kernels == Kernels::compiled) forget_unread(kind, policy.kept.back());
        policy.wanted.push_back(operators_wanted_again(kind, policy.kept.back()));
    }
    return policy;
}

}  // namespace zeroplan
