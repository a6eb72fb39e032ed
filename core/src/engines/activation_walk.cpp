#include "engines/activation_walk.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

bool is_loss(OperatorKind kind) {
    return kind == OperatorKind::cross_entropy || kind == OperatorKind::mean_squared_error;
}

/// Output i is input i: a fused rotary embedding. A fused loss shares its gradient only.
bool forwards_in_place(const Operator& op, std::size_t position) {
    return op.in_place && !is_loss(op.kind) && position < op.inputs.size();
}

/// Kernels that take the engine's shared workspace.
bool uses_matrix_library(OperatorKind kind) {
    return kind == OperatorKind::linear || kind == OperatorKind::attention_scores ||
           kind == OperatorKind::attention_values;
}

/// Tensors of `kind` that its attention core makes.
std::vector<bool> attention_core_outputs(const BlockKind& kind) {
    std::vector<bool> made(kind.tensors.size(), false);
    for (const Operator& op : kind.operators)
        if (op.attention_core)
            for (const std::uint32_t tensor : op.outputs) made[tensor] = true;
    return made;
}

/// Tensors that the attention core reads and doesn't make itself, each once.
std::vector<std::uint32_t> attention_core_inputs(const BlockKind& kind) {
    const std::vector<bool> made = attention_core_outputs(kind);
    std::vector<std::uint32_t> inputs;
    for (const Operator& op : kind.operators) {
        if (!op.attention_core) continue;
        for (const std::uint32_t tensor : op.inputs)
            if (!made[tensor] && std::find(inputs.begin(), inputs.end(), tensor) == inputs.end())
                inputs.push_back(tensor);
    }
    return inputs;
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

ActivationWalk::ActivationWalk(const ModelSpec& model, const TrainingConfig& training,
                               ProgramBuilder& builder, std::vector<std::uint32_t> unit_of_parameter,
                               BufferId workspace, GradientSums sums)
    : model_(model),
      training_(training),
      builder_(builder),
      unit_of_parameter_(std::move(unit_of_parameter)),
      workspace_(workspace),
      sums_(sums),
      checkpointed_(checkpointed_blocks(model, training)) {
    for (const BlockKind& kind : model.block_kinds) {
        const bool selective = training.recompute == Recompute::selective && kind.is_layer;
        dropped_.push_back(selective ? attention_core_outputs(kind)
                                     : std::vector<bool>(kind.tensors.size(), false));
        const bool by_policy = training.recompute == Recompute::selective_op && kind.is_layer;
        kept_.push_back(by_policy ? outputs_kept_by_policy(kind)
                                  : std::vector<bool>(kind.tensors.size(), false));
        if (training.kernels == Kernels::compiled) forget_unread(kind, kept_.back());
        wanted_.push_back(operators_wanted_again(kind, kept_.back()));
    }
}

void ActivationWalk::begin_chunk(std::uint32_t first, std::uint32_t last, BufferId input) {
    instances_.clear();
    tensors_.assign(model_.blocks.size(), {});
    incoming_gradient_ = none;
    context_ = context_gradient_ = none;
    last_block_ = last;
    output_ = no_buffer;
    const bool from_batch = input == no_buffer;
    batch_ = from_batch ? make(first, 0, BufferRole::batch, 1) : borrow(input);
    handed_over_ = batch_;
    labels_ = none;
    if (const auto target = kind_of(last).target_tensor) {
        if (model_.target_is_input) {
            labels_ = batch_;
            use(batch_);
        } else {
            labels_ = make(last, *target, BufferRole::labels, 1);
        }
    }
    const BufferId labels = labels_ == none || labels_ == batch_ ? no_buffer : instances_[labels_].buffer;
    if (from_batch || labels != no_buffer)
        builder_.load_batch(from_batch ? instances_[batch_].buffer : no_buffer, labels);
}

/// One user more than the walk has, so that it never frees it.
ActivationWalk::InstanceId ActivationWalk::borrow(BufferId buffer) {
    instances_.push_back({.buffer = buffer, .users = 2, .shared = true});
    return static_cast<InstanceId>(instances_.size() - 1);
}

void ActivationWalk::receive_gradient(BufferId gradient) {
    incoming_gradient_ = borrow(gradient);
}

void ActivationWalk::start_from_batch(std::uint32_t block) {
    context_ = handed_over_;
    handed_over_ = make(block, 0, BufferRole::batch, 1);
    builder_.load_batch(instances_[handed_over_].buffer, no_buffer);
}

void ActivationWalk::forward(std::uint32_t block, const Hooks& hooks, std::vector<OperationId> waits) {
    const BlockKind& kind = kind_of(block);
    pending_waits_ = std::move(waits);
    if (kind.starts_from_batch) start_from_batch(block);
    Instances& tensors = tensors_[block];
    tensors.assign(kind.tensors.size(), none);
    tensors[0] = handed_over_;
    if (kind.context_tensor) tensors[*kind.context_tensor] = context_;
    if (kind.target_tensor) tensors[*kind.target_tensor] = labels_;

    const bool checkpoint = checkpoints(block);
    Counts users = future_users(block, !checkpoint);
    ++users[kind.output];  // the next block
    if (checkpoint)
        for (std::uint32_t tensor = 0; tensor < users.size(); ++tensor)
            if (is_kept(block, tensor)) ++users[tensor];
    if (checkpoint && kind.context_tensor) use(context_);  // held until it runs again
    run_forward(block, ComputePhase::forward, std::move(users), hooks);
    if (!checkpoint) release(tensors[0]);
    if (kind.target_tensor) release(labels_);
    handed_over_ = tensors[kind.output];
    if (kind.is_layer && training_.offload_activations != OffloadTarget::none) send_to_host(block);
    if (block != last_block_) return;
    if (context_ != none) release(context_);  // held by whoever called the encoder
    if (kind.target_tensor)
        release(handed_over_);
    else
        output_ = instances_[handed_over_].buffer;
}

void ActivationWalk::backward(std::uint32_t block, const Hooks& hooks, std::vector<OperationId> waits,
                              bool accumulate_after_first) {
    const BlockKind& kind = kind_of(block);
    pending_waits_ = std::move(waits);
    fetch_from_host(block);
    Instances& tensors = tensors_[block];
    const InstanceId arrived = incoming_gradient_;
    const bool holds = reentrant_checkpoints_ && checkpoints(block) && arrived != none;
    const bool was_shared = holds && instances_[arrived].shared;
    if (checkpoints(block)) {
        if (reentrant_checkpoints_) {
            Counts users = future_users(block, true);
            if (holds) ++users[kind.output];
            run_forward(block, ComputePhase::recompute, std::move(users), hooks);
            release(tensors[0]);
            if (kind.context_tensor) release(tensors[*kind.context_tensor]);
        } else {
            recompute_block(block, hooks);
        }
    }
    if (holds) {
        use(arrived);
        instances_[arrived].shared = true;
    }
    Instances gradients(kind.tensors.size(), none);
    gradients[kind.output] = incoming_gradient_;
    if (kind.context_tensor) gradients[*kind.context_tensor] = context_gradient_;
    bool core_is_dropped = true;
    for (auto op = static_cast<std::uint32_t>(kind.operators.size()); op-- > 0;) {
        const auto& saved = kind.operators[op].saved;
        if (core_is_dropped &&
            std::any_of(saved.begin(), saved.end(), [&](auto t) { return is_dropped(block, t); })) {
            recompute_attention_core(block, hooks);
            core_is_dropped = false;
        }
        run_backward_operator(block, op, gradients, hooks, accumulate_after_first);
    }
    if (kind.context_tensor) context_gradient_ = gradients[*kind.context_tensor];
    incoming_gradient_ = kind.starts_from_batch ? context_gradient_ : gradients[0];
    if (holds) {
        instances_[arrived].shared = was_shared;
        release(arrived);
        release(tensors[kind.output]);
    }
}

ActivationWalk::InstanceId ActivationWalk::make(std::uint32_t block, std::uint32_t tensor, BufferRole role,
                                                std::uint32_t users) {
    const TensorSpec& spec = kind_of(block).tensors[tensor];
    const BufferId buffer = builder_.allocate(
        {.role = role,
         .category = spec.category,
         .dtype = resolve(spec.dtype, storage_dtype(training_.compute_dtype)),
         .owner =
             !kind_of(block).starts_from_batch && (role == BufferRole::batch || role == BufferRole::labels)
                 ? 0
                 : block,
         .tensor = tensor,
         .elements = elements(spec.extent, training_.micro_batch_size, training_.sequence_length)});
    instances_.push_back({buffer, users});
    return static_cast<InstanceId>(instances_.size() - 1);
}

void ActivationWalk::release(InstanceId id) {
    if (--instances_[id].users == 0) builder_.free(instances_[id].buffer);
}

ActivationWalk::Counts ActivationWalk::future_users(std::uint32_t block, bool keep) const {
    const BlockKind& kind = kind_of(block);
    Counts users(kind.tensors.size(), 0);
    bool drops_core = false;
    for (const Operator& op : kind.operators) {
        for (const std::uint32_t tensor : op.inputs) ++users[tensor];
        if (!keep) continue;
        for (const std::uint32_t tensor : op.saved) {
            if (is_dropped(block, tensor)) {
                drops_core = true;
            } else {
                ++users[tensor];
            }
        }
    }
    if (drops_core)
        for (const std::uint32_t tensor : attention_core_inputs(kind)) ++users[tensor];
    return users;
}

void ActivationWalk::run_forward(std::uint32_t block, ComputePhase phase, Counts users, const Hooks& hooks) {
    const BlockKind& kind = kind_of(block);
    use(tensors_[block][0], users[0]);
    if (kind.target_tensor && *kind.target_tensor != 0)
        use(tensors_[block][*kind.target_tensor], users[*kind.target_tensor]);
    if (kind.context_tensor) use(tensors_[block][*kind.context_tensor], users[*kind.context_tensor]);
    for (std::uint32_t op = 0; op < kind.operators.size(); ++op)
        run_forward_operator(block, op, phase, users, hooks);
}

void ActivationWalk::run_forward_operator(std::uint32_t block, std::uint32_t index, ComputePhase phase,
                                          const Counts& users, const Hooks& hooks) {
    const Operator& op = kind_of(block).operators[index];
    Instances& tensors = tensors_[block];
    Compute compute{.block = block, .op = index, .phase = phase};
    compute.arguments.reserve(op.inputs.size() + op.outputs.size() + 3);
    for (std::uint32_t i = 0; i < op.inputs.size(); ++i)
        compute.arguments.push_back({ArgumentRole::input, i, instances_[tensors[op.inputs[i]]].buffer});
    for (std::uint32_t i = 0; i < op.outputs.size(); ++i) {
        const std::uint32_t tensor = op.outputs[i];
        if (forwards_in_place(op, i)) {
            tensors[tensor] = tensors[op.inputs[i]];
            use(tensors[tensor], users[tensor]);
        } else {
            // One more user until the operator has run, so that an unread output is freed right after it.
            tensors[tensor] = make(block, tensor, BufferRole::activation, users[tensor] + 1);
        }
        compute.arguments.push_back({ArgumentRole::output, i, instances_[tensors[tensor]].buffer});
    }
    add_parameters(block, op, hooks, compute);
    emit(std::move(compute), op, op.forward_workspace, hooks);

    for (const std::uint32_t tensor : op.inputs) release(tensors[tensor]);
    for (std::uint32_t i = 0; i < op.outputs.size(); ++i)
        if (!forwards_in_place(op, i)) release(tensors[op.outputs[i]]);
}

void ActivationWalk::send_to_host(std::uint32_t block) {
    for (const InstanceId id : tensors_[block]) {
        if (id == none || id == handed_over_ || id == batch_ || id == labels_ || id == context_) continue;
        Instance& instance = instances_[id];
        if (instance.users == 0 || instance.on_host) continue;
        builder_.free(instance.buffer);
        instance.on_host = true;
    }
}

void ActivationWalk::fetch_from_host(std::uint32_t block) {
    for (const InstanceId id : tensors_[block]) {
        if (id == none || !instances_[id].on_host) continue;
        instances_[id].buffer = builder_.allocate(builder_.buffer(instances_[id].buffer));
        instances_[id].on_host = false;
    }
}

bool ActivationWalk::skipped_in_recompute(std::uint32_t block, std::uint32_t op) const {
    return !wanted_[model_.blocks[block].kind][op];
}

/// What was kept is read as it is; everything else that backward reads is made again.
void ActivationWalk::recompute_block(std::uint32_t block, const Hooks& hooks) {
    const BlockKind& kind = kind_of(block);
    Counts users(kind.tensors.size(), 0);
    for (std::uint32_t op = 0; op < kind.operators.size(); ++op) {
        if (!skipped_in_recompute(block, op))
            for (const std::uint32_t tensor : kind.operators[op].inputs) ++users[tensor];
        for (const std::uint32_t tensor : kind.operators[op].saved) ++users[tensor];
    }
    const Instances& tensors = tensors_[block];
    for (std::uint32_t tensor = 0; tensor < users.size(); ++tensor)
        if (is_kept(block, tensor)) use(tensors[tensor], users[tensor]);
    use(tensors[0], users[0]);
    if (kind.target_tensor && *kind.target_tensor != 0)
        use(tensors[*kind.target_tensor], users[*kind.target_tensor]);
    if (kind.context_tensor) use(tensors[*kind.context_tensor], users[*kind.context_tensor]);
    for (std::uint32_t op = 0; op < kind.operators.size(); ++op)
        if (!skipped_in_recompute(block, op))
            run_forward_operator(block, op, ComputePhase::recompute, users, hooks);
    for (std::uint32_t tensor = 0; tensor < users.size(); ++tensor)
        if (is_kept(block, tensor)) release(tensors[tensor]);  // held since forward
    release(tensors[0]);
    if (kind.context_tensor) release(tensors[*kind.context_tensor]);
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
    for (const std::uint32_t tensor : inputs) use(tensors_[block][tensor], users[tensor]);
    for (std::uint32_t op = 0; op < kind.operators.size(); ++op)
        if (kind.operators[op].attention_core)
            run_forward_operator(block, op, ComputePhase::recompute, users, hooks);
    for (const std::uint32_t tensor : inputs) release(tensors_[block][tensor]);  // held since forward
}

void ActivationWalk::run_backward_operator(std::uint32_t block, std::uint32_t index, Instances& gradients,
                                           const Hooks& hooks, bool accumulate_after_first) {
    const Operator& op = kind_of(block).operators[index];
    const Instances& tensors = tensors_[block];
    const bool has_gradient = std::any_of(op.outputs.begin(), op.outputs.end(),
                                          [&](std::uint32_t tensor) { return gradients[tensor] != none; });
    if (has_gradient || is_loss(op.kind)) {
        Compute compute{.block = block,
                        .op = index,
                        .phase = ComputePhase::backward,
                        .accumulate_after_first = accumulate_after_first && !op.parameters.empty()};
        compute.arguments.reserve(op.inputs.size() + op.outputs.size() + op.saved.size() + 3);
        for (std::uint32_t i = 0; i < op.outputs.size(); ++i)
            if (gradients[op.outputs[i]] != none)
                compute.arguments.push_back(
                    {ArgumentRole::grad_output, i, instances_[gradients[op.outputs[i]]].buffer});
        for (std::uint32_t i = 0; i < op.saved.size(); ++i)
            compute.arguments.push_back({ArgumentRole::saved, i, instances_[tensors[op.saved[i]]].buffer});
        if (op.saves_parameters) add_parameters(block, op, hooks, compute);
        add_parameter_gradients(block, op, hooks, compute);
        const std::vector<FreshGradient> fresh = add_input_gradients(block, op, gradients, compute);
        // An addition hands its gradient on as it is: nothing runs unless it has to be summed into another
        // one.
        const bool runs = op.kind != OperatorKind::residual_add ||
                          std::any_of(compute.arguments.begin(), compute.arguments.end(),
                                      [](const Argument& a) { return a.role == ArgumentRole::grad_input; });
        if (runs) emit(std::move(compute), op, op.backward_workspace, hooks);
        for (const FreshGradient& gradient : fresh) {
            builder_.on_stream(Stream::compute, Accumulate{.from = {instances_[gradient.fresh].buffer},
                                                           .to = {instances_[gradient.sum].buffer},
                                                           .always_add = true});
            release(gradient.fresh);
        }
    }
    for (const std::uint32_t tensor : op.outputs) {
        if (gradients[tensor] == none) continue;
        release(gradients[tensor]);
        gradients[tensor] = none;
    }
    for (const std::uint32_t tensor : op.saved) release(tensors[tensor]);
}

std::vector<ActivationWalk::FreshGradient> ActivationWalk::add_input_gradients(std::uint32_t block,
                                                                               const Operator& op,
                                                                               Instances& gradients,
                                                                               Compute& compute) {
    const BlockKind& kind = kind_of(block);
    std::vector<FreshGradient> fresh;
    for (std::uint32_t i = 0; i < op.inputs.size(); ++i) {
        const std::uint32_t tensor = op.inputs[i];
        if (!kind.tensors[tensor].needs_gradient) continue;
        if (gradients[tensor] == none) {
            if (op.kind == OperatorKind::residual_add || (op.in_place && !is_loss(op.kind))) {
                gradients[tensor] = gradients[op.outputs[op.in_place ? i : 0]];
                use(gradients[tensor]);
                if (op.kind == OperatorKind::residual_add) continue;
            } else if (op.in_place) {
                gradients[tensor] =
                    tensors_[block][tensor];  // a fused loss overwrites the logits with their gradient
                use(gradients[tensor]);
            } else {
                gradients[tensor] = make(block, tensor, BufferRole::activation_gradient, 1);
            }
        } else if (instances_[gradients[tensor]].shared) {
            // What is there belongs to somebody else: the sum goes into the new gradient.
            const InstanceId sum = make(block, tensor, BufferRole::activation_gradient, 1);
            fresh.push_back({gradients[tensor], sum});
            gradients[tensor] = sum;
        } else if (sums_ == GradientSums::fresh && op.kind != OperatorKind::residual_add &&
                   !is_loss(op.kind)) {
            fresh.push_back({make(block, tensor, BufferRole::activation_gradient, 1), gradients[tensor]});
            compute.arguments.push_back({ArgumentRole::grad_input, i, instances_[fresh.back().fresh].buffer});
            continue;
        }
        compute.arguments.push_back({ArgumentRole::grad_input, i, instances_[gradients[tensor]].buffer});
    }
    return fresh;
}

void ActivationWalk::add_parameters(std::uint32_t block, const Operator& op, const Hooks& hooks,
                                    Compute& compute) const {
    const std::size_t first = compute.arguments.size();
    for (const std::uint32_t position : op.parameters) {
        const std::uint32_t unit = unit_of_parameter_[model_.blocks[block].parameters[position]];
        const auto same_unit = [unit](const Argument& a) { return a.index == unit; };
        if (std::any_of(compute.arguments.begin() + static_cast<std::ptrdiff_t>(first),
                        compute.arguments.end(), same_unit))
            continue;
        if (const BufferId buffer = hooks.parameters(unit); buffer != no_buffer)
            compute.arguments.push_back({ArgumentRole::parameters, unit, buffer});
    }
}

void ActivationWalk::add_parameter_gradients(std::uint32_t block, const Operator& op, const Hooks& hooks,
                                             Compute& compute) const {
    const std::size_t first = compute.arguments.size();
    for (const std::uint32_t position : op.parameters) {
        const std::uint32_t parameter = model_.blocks[block].parameters[position];
        const std::uint32_t unit = unit_of_parameter_[parameter];
        compute.accumulate = compute.accumulate || hooks.accumulate(parameter);
        const auto same_unit = [unit](const Argument& a) { return a.index == unit; };
        if (std::any_of(compute.arguments.begin() + static_cast<std::ptrdiff_t>(first),
                        compute.arguments.end(), same_unit))
            continue;
        if (const BufferId buffer = hooks.gradients(unit); buffer != no_buffer)
            compute.arguments.push_back({ArgumentRole::gradients, unit, buffer});
    }
}

Collective ActivationWalk::to_operation(const OperatorCollective& collective) const {
    return {.kind = collective.kind,
            .group = collective.group,
            .send = {},
            .receive = {},
            .dtype = resolve(collective.dtype, storage_dtype(training_.compute_dtype)),
            .elements = elements(collective.extent, training_.micro_batch_size, training_.sequence_length)};
}

void ActivationWalk::emit_collectives(const Operator& op, CollectiveMoment moment) {
    for (const OperatorCollective& collective : op.collectives)
        if (collective.moment == moment && !collective.overlapped)
            builder_.on_stream(Stream::compute, to_operation(collective), std::move(pending_waits_));
}

/// They start with the operator: what a module overlaps it cuts into pieces, or runs beside the other half of
/// a backward product.
void ActivationWalk::emit_overlapped(const Operator& op, bool backward) {
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

void ActivationWalk::emit(Compute compute, const Operator& op, const Extent& workspace, const Hooks& hooks) {
    const ComputePhase phase = compute.phase;
    const std::uint32_t block = compute.block;
    if (hooks.before) hooks.before(phase, block, op);
    if (workspace_ != no_buffer && uses_matrix_library(op.kind))
        compute.arguments.push_back({ArgumentRole::workspace, 0, workspace_});
    BufferId temporary = no_buffer;
    const std::uint64_t numel = elements(workspace, training_.micro_batch_size, training_.sequence_length);
    if (numel > 0) {
        temporary = builder_.allocate({.role = BufferRole::workspace,
                                       .category = Category::temporaries,
                                       .dtype = storage_dtype(training_.compute_dtype),
                                       .owner = compute.block,
                                       .elements = numel});
        compute.arguments.push_back({ArgumentRole::workspace, 1, temporary});
    }
    if (hooks.waits)
        for (const OperationId id : hooks.waits()) pending_waits_.push_back(id);
    const bool backward = phase == ComputePhase::backward;
    if (overlapped_in_ == builder_.section_number())
        pending_waits_.insert(pending_waits_.end(), overlapped_.begin(), overlapped_.end());
    overlapped_.clear();
    emit_collectives(op, backward ? CollectiveMoment::before_backward : CollectiveMoment::before_forward);
    emit_overlapped(op, backward);
    builder_.on_stream(Stream::compute, std::move(compute), std::move(pending_waits_));
    pending_waits_.clear();
    emit_collectives(op, backward ? CollectiveMoment::after_backward : CollectiveMoment::after_forward);
    if (temporary != no_buffer) builder_.free(temporary);
    if (hooks.after) hooks.after(phase, block, op);
}

}  // namespace zeroplan
