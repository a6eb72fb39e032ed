#include "engines/activation_walk.hpp"

#include <algorithm>
#include <utility>

#include "engines/stage_messages.hpp"

namespace zeroplan {
namespace {

/// Forward, recompute and backward with what each allocates and frees, as programs have it; no result
/// depends on it.
constexpr std::size_t operations_of_an_operator = 12;

/// Output i is input i: a fused rotary embedding. A fused loss shares its gradient only.
bool forwards_in_place(const Operator& op, std::size_t position) {
    return op.in_place && !is_loss(op.kind) && position < op.inputs.size();
}

}  // namespace

ActivationWalk::ActivationWalk(const ModelSpec& model, const TrainingConfig& training,
                               ProgramBuilder& builder, std::vector<std::uint32_t> unit_of_parameter,
                               BufferId workspace, GradientSums sums)
    : model_(model),
      training_(training),
      builder_(builder),
      unit_of_parameter_(std::move(unit_of_parameter)),
      sums_(sums),
      policy_(recompute_policy(model, training)),
      issue_(training, builder, workspace),
      live_(builder),
      offload_(builder) {}

void ActivationWalk::begin_chunk(std::uint32_t first, std::uint32_t last, BufferId input) {
    live_.clear();
    offload_.begin();
    tensors_.assign(model_.blocks.size(), {});
    part_of_input_.assign(model_.blocks.size(), no_buffer);
    incoming_gradient_ = no_instance;
    context_ = context_gradient_ = no_instance;
    last_block_ = last;
    output_ = no_buffer;
    std::size_t operators = 0;
    for (std::uint32_t block = first; block <= last; ++block) operators += kind_of(block).operators.size();
    builder_.expect(operators * operations_of_an_operator);
    load_batch(first, last, input);
}

void ActivationWalk::load_batch(std::uint32_t first, std::uint32_t last, BufferId input) {
    const bool from_batch = input == no_buffer;
    batch_ = from_batch ? make(first, 0, BufferRole::batch, 1) : live_.borrow(input);
    handed_over_ = batch_;
    labels_ = no_instance;
    if (const auto target = kind_of(last).target_tensor) {
        if (model_.target_is_input) {
            labels_ = batch_;
            live_.use(batch_);
        } else {
            labels_ = make(last, *target, BufferRole::labels, 1);
        }
    }
    const BufferId labels = labels_ == no_instance || labels_ == batch_ ? no_buffer : live_.buffer(labels_);
    if (from_batch || labels != no_buffer)
        builder_.load_batch(from_batch ? live_.buffer(batch_) : no_buffer, labels);
}

void ActivationWalk::receive_gradient(BufferId gradient) {
    incoming_gradient_ = live_.borrow(gradient);
}

void ActivationWalk::start_from_batch(std::uint32_t block) {
    context_ = handed_over_;
    handed_over_ = make(block, 0, BufferRole::batch, 1);
    builder_.load_batch(live_.buffer(handed_over_), no_buffer);
}

void ActivationWalk::forward(std::uint32_t block, const Hooks& hooks, std::vector<OperationId> waits) {
    const BlockKind& kind = kind_of(block);
    issue_.wait_for(std::move(waits));
    if (kind.starts_from_batch) start_from_batch(block);
    Instances& tensors = tensors_[block];
    tensors.assign(kind.tensors.size(), no_instance);
    tensors[0] = handed_over_;
    if (kind.context_tensor) tensors[*kind.context_tensor] = context_;
    if (kind.target_tensor) tensors[*kind.target_tensor] = labels_;

    const bool checkpoint = checkpoints(block);
    Counts users = future_users(block, !checkpoint);
    ++users[kind.output];  // the next block
    if (checkpoint)
        for (std::uint32_t tensor = 0; tensor < users.size(); ++tensor)
            if (is_kept(block, tensor)) ++users[tensor];
    if (checkpoint && kind.context_tensor) live_.use(context_);  // held until it runs again
    if (partitions(block)) make_part(block);
    run_forward(block, ComputePhase::forward, users, hooks);
    if (partitions(block)) live_.send_to_host(tensors[0]);  // its part alone stays, on the device
    if (!checkpoint) live_.release(tensors[0]);
    if (kind.target_tensor) live_.release(labels_);
    handed_over_ = tensors[kind.output];
    if (kind.is_layer && training_.offload_activations != OffloadTarget::none) send_to_host(block);
    if (block != last_block_) return;
    if (context_ != no_instance) live_.release(context_);  // held by whoever called the encoder
    if (kind.target_tensor)
        live_.release(handed_over_);
    else
        output_ = live_.buffer(handed_over_);
}

InstanceId ActivationWalk::make(std::uint32_t block, std::uint32_t tensor, BufferRole role,
                                std::uint32_t users) {
    const TensorSpec& spec = kind_of(block).tensors[tensor];
    const bool of_first_batch =
        !kind_of(block).starts_from_batch && (role == BufferRole::batch || role == BufferRole::labels);
    return live_.make(
        {.role = role,
         .category = spec.category,
         .dtype = resolve(spec.dtype, storage_dtype(training_.compute_dtype)),
         .owner = of_first_batch ? 0 : block,
         .tensor = tensor,
         .elements = elements(spec.extent, training_.micro_batch_size, training_.sequence_length)},
        users);
}

ActivationWalk::Counts ActivationWalk::future_users(std::uint32_t block, bool keep) const {
    const BlockKind& kind = kind_of(block);
    Counts users(kind.tensors.size(), 0);
    for (const Operator& op : kind.operators) {
        for (const std::uint32_t tensor : op.inputs) ++users[tensor];
        if (!keep) continue;
        for (const std::uint32_t tensor : op.saved)
            if (!is_dropped(block, tensor)) ++users[tensor];
    }
    if (keep)
        for (const RecomputeSegment& segment : segments_of(block))
            for (const std::uint32_t tensor : segment.inputs)
                if (!is_dropped(block, tensor)) ++users[tensor];
    return users;
}

void ActivationWalk::use_inputs(std::uint32_t block, const Counts& users) {
    const BlockKind& kind = kind_of(block);
    const Instances& tensors = tensors_[block];
    live_.use(tensors[0], users[0]);
    if (kind.target_tensor && *kind.target_tensor != 0)
        live_.use(tensors[*kind.target_tensor], users[*kind.target_tensor]);
    if (kind.context_tensor) live_.use(tensors[*kind.context_tensor], users[*kind.context_tensor]);
}

void ActivationWalk::run_forward(std::uint32_t block, ComputePhase phase, const Counts& users,
                                 const Hooks& hooks) {
    use_inputs(block, users);
    for (std::uint32_t op = 0; op < kind_of(block).operators.size(); ++op)
        run_forward_operator(block, op, phase, users, hooks);
}

void ActivationWalk::run_forward_operator(std::uint32_t block, std::uint32_t index, ComputePhase phase,
                                          const Counts& users, const Hooks& hooks) {
    const Operator& op = kind_of(block).operators[index];
    Instances& tensors = tensors_[block];
    Compute compute{.block = block, .op = index, .phase = phase};
    compute.arguments.reserve(op.inputs.size() + op.outputs.size() + 3);
    for (std::uint32_t i = 0; i < op.inputs.size(); ++i)
        compute.arguments.push_back({ArgumentRole::input, i, live_.buffer(tensors[op.inputs[i]])});
    for (std::uint32_t i = 0; i < op.outputs.size(); ++i) {
        const std::uint32_t tensor = op.outputs[i];
        if (forwards_in_place(op, i)) {
            tensors[tensor] = tensors[op.inputs[i]];
            live_.use(tensors[tensor], users[tensor]);
        } else {
            // One more user until the operator has run, so that an unread output is freed right after it.
            tensors[tensor] = make(block, tensor, BufferRole::activation, users[tensor] + 1);
        }
        compute.arguments.push_back({ArgumentRole::output, i, live_.buffer(tensors[tensor])});
    }
    add_units(block, op, ArgumentRole::parameters, hooks.parameters, compute);
    issue_.issue(std::move(compute), op, op.forward_workspace, hooks);

    for (const std::uint32_t tensor : op.inputs) live_.release(tensors[tensor]);
    for (std::uint32_t i = 0; i < op.outputs.size(); ++i)
        if (!forwards_in_place(op, i)) live_.release(tensors[op.outputs[i]]);
}

void ActivationWalk::add_units(std::uint32_t block, const Operator& op, ArgumentRole role,
                               const std::function<BufferId(std::uint32_t)>& place, Compute& compute) const {
    const auto first = static_cast<std::ptrdiff_t>(compute.arguments.size());
    for (const std::uint32_t position : op.parameters) {
        const std::uint32_t unit = unit_of_parameter_[model_.blocks[block].parameters[position]];
        const auto same_unit = [unit](const Argument& a) { return a.index == unit; };
        if (std::any_of(compute.arguments.begin() + first, compute.arguments.end(), same_unit)) continue;
        if (const BufferId buffer = place(unit); buffer != no_buffer)
            compute.arguments.push_back({role, unit, buffer});
    }
}

/// A clone of the rank's part is made before the block runs.
void ActivationWalk::make_part(std::uint32_t block) {
    Buffer part = builder_.buffer(live_.buffer(tensors_[block][0]));
    part.elements /= parts_;
    part_of_input_[block] = builder_.allocate(part);
}

void ActivationWalk::gather_input(std::uint32_t block) {
    live_.fetch_from_host(tensors_[block][0]);
    const Buffer& whole = builder_.buffer(live_.buffer(tensors_[block][0]));
    gather_parts(builder_, whole.dtype, whole.elements);
    builder_.free_if_there(part_of_input_[block]);
}

void ActivationWalk::send_to_host(std::uint32_t block) {
    for (const InstanceId id : tensors_[block])
        if (id != no_instance && id != handed_over_ && id != batch_ && id != labels_ && id != context_)
            if (live_.send_to_host(id)) offload_.send(builder_.buffer(live_.buffer(id)), block);
}

void ActivationWalk::fetch_from_host(std::uint32_t block) {
    for (const InstanceId id : tensors_[block])
        if (id != no_instance && live_.fetch_from_host(id))
            offload_.fetch(builder_.buffer(live_.buffer(id)), block);
}

}  // namespace zeroplan
