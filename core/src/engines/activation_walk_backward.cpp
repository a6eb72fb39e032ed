#include <algorithm>
#include <utility>

#include "engines/activation_walk.hpp"

namespace zeroplan {

void ActivationWalk::backward(std::uint32_t block, const Hooks& hooks, std::vector<OperationId> waits,
                              bool accumulate_after_first) {
    issue_.wait_for(std::move(waits));
    if (partitions(block)) gather_input(block);
    fetch_from_host(block);
    const InstanceId arrived = incoming_gradient_;
    const bool holds = reentrant_checkpoints_ && checkpoints(block) && arrived != no_instance;
    const bool was_shared = holds && live_.is_shared(arrived);
    if (checkpoints(block)) recompute(block, hooks, holds);
    if (holds) {
        live_.use(arrived);
        live_.set_shared(arrived, true);
    }
    run_backward(block, hooks, accumulate_after_first);
    offload_.end_backward();
    if (holds) {
        live_.set_shared(arrived, was_shared);
        live_.release(arrived);
        live_.release(tensors_[block][kind_of(block).output]);
    }
}

void ActivationWalk::run_backward(std::uint32_t block, const Hooks& hooks, bool accumulate_after_first) {
    const BlockKind& kind = kind_of(block);
    Instances gradients(kind.tensors.size(), no_instance);
    gradients[kind.output] = incoming_gradient_;
    if (kind.context_tensor) gradients[*kind.context_tensor] = context_gradient_;
    ran_again_.assign(segments_of(block).size(), false);
    for (auto op = static_cast<std::uint32_t>(kind.operators.size()); op-- > 0;) {
        for (const std::uint32_t tensor : kind.operators[op].saved)
            if (const auto segment = segment_of(block, tensor)) recompute_segment(block, *segment, hooks);
        run_backward_operator(block, op, gradients, hooks, accumulate_after_first);
    }
    if (kind.context_tensor) context_gradient_ = gradients[*kind.context_tensor];
    incoming_gradient_ = kind.starts_from_batch ? context_gradient_ : gradients[0];
}

void ActivationWalk::run_backward_operator(std::uint32_t block, std::uint32_t index, Instances& gradients,
                                           const Hooks& hooks, bool accumulate_after_first) {
    const Operator& op = kind_of(block).operators[index];
    const bool has_gradient = std::any_of(op.outputs.begin(), op.outputs.end(), [&](std::uint32_t tensor) {
        return gradients[tensor] != no_instance;
    });
    if (has_gradient || is_loss(op.kind))
        issue_backward(block,
                       {.block = block,
                        .op = index,
                        .phase = ComputePhase::backward,
                        .accumulate_after_first = accumulate_after_first && !op.parameters.empty()},
                       gradients, hooks);
    for (const std::uint32_t tensor : op.outputs) {
        if (gradients[tensor] == no_instance) continue;
        live_.release(gradients[tensor]);
        gradients[tensor] = no_instance;
    }
    for (const std::uint32_t tensor : op.saved) live_.release(tensors_[block][tensor]);
}

void ActivationWalk::issue_backward(std::uint32_t block, Compute compute, Instances& gradients,
                                    const Hooks& hooks) {
    const Operator& op = kind_of(block).operators[compute.op];
    compute.arguments.reserve(op.inputs.size() + op.outputs.size() + op.saved.size() + 3);
    for (std::uint32_t i = 0; i < op.outputs.size(); ++i)
        if (const InstanceId gradient = gradients[op.outputs[i]]; gradient != no_instance)
            compute.arguments.push_back({ArgumentRole::grad_output, i, live_.buffer(gradient)});
    for (std::uint32_t i = 0; i < op.saved.size(); ++i)
        compute.arguments.push_back({ArgumentRole::saved, i, live_.buffer(tensors_[block][op.saved[i]])});
    if (op.saves_parameters) add_units(block, op, ArgumentRole::parameters, hooks.parameters, compute);
    compute.accumulate = std::any_of(op.parameters.begin(), op.parameters.end(), [&](std::uint32_t position) {
        return hooks.accumulate(model_.blocks[block].parameters[position]);
    });
    add_units(block, op, ArgumentRole::gradients, hooks.gradients, compute);
    const std::vector<FreshGradient> fresh = add_input_gradients(block, op, gradients, compute);
    // An addition hands its gradient on as it is: nothing runs unless it has to be summed into another one.
    const bool runs = op.kind != OperatorKind::residual_add ||
                      std::any_of(compute.arguments.begin(), compute.arguments.end(),
                                  [](const Argument& a) { return a.role == ArgumentRole::grad_input; });
    if (runs) issue_.issue(std::move(compute), op, op.backward_workspace, hooks);
    for (const FreshGradient& gradient : fresh) {
        builder_.on_stream(Stream::compute, Accumulate{.from = {live_.buffer(gradient.fresh)},
                                                       .to = {live_.buffer(gradient.sum)},
                                                       .always_add = true});
        live_.release(gradient.fresh);
    }
}

InstanceId ActivationWalk::first_gradient(std::uint32_t block, const Operator& op, std::uint32_t input,
                                          const Instances& gradients) {
    const std::uint32_t tensor = op.inputs[input];
    if (op.kind != OperatorKind::residual_add && !op.in_place) return make_gradient(block, tensor);
    // A fused loss overwrites the logits with their gradient; others hand on their output's.
    const InstanceId there =
        is_loss(op.kind) ? tensors_[block][tensor] : gradients[op.outputs[op.in_place ? input : 0]];
    live_.use(there);
    return there;
}

std::vector<ActivationWalk::FreshGradient> ActivationWalk::add_input_gradients(std::uint32_t block,
                                                                               const Operator& op,
                                                                               Instances& gradients,
                                                                               Compute& compute) {
    std::vector<FreshGradient> fresh;
    for (std::uint32_t i = 0; i < op.inputs.size(); ++i) {
        const std::uint32_t tensor = op.inputs[i];
        if (!kind_of(block).tensors[tensor].needs_gradient) continue;
        InstanceId& known = gradients[tensor];
        InstanceId written = known;
        if (known == no_instance) {
            written = known = first_gradient(block, op, i, gradients);
            if (op.kind == OperatorKind::residual_add) continue;
        } else if (live_.is_shared(known)) {
            // What is there belongs to somebody else: the sum goes into the new gradient.
            written = make_gradient(block, tensor);
            fresh.push_back({known, written});
            known = written;
        } else if (sums_ == GradientSums::fresh && op.kind != OperatorKind::residual_add &&
                   !is_loss(op.kind)) {
            written = make_gradient(block, tensor);
            fresh.push_back({written, known});
        }
        compute.arguments.push_back({ArgumentRole::grad_input, i, live_.buffer(written)});
    }
    return fresh;
}

}  // namespace zeroplan
