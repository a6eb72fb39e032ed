#include "engines/megatron_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engines/tied_embedding.hpp"

namespace zeroplan {
namespace {

bool is_expert(const Parameter& parameter) {
    return parameter.name.find(".experts.") != std::string::npos;
}

}  // namespace

MegatronStatePlan megatron_state_plan(const Scenario& scenario, const MegatronOptions& options) {
    const TrainingConfig& training = scenario.training;
    const std::uint64_t replicas = training.data_parallel * training.context_parallel;
    MegatronStatePlan plan{
        .distributed = training.zero_stage >= 1,
        .parameters = training.parameter_dtype,
        .gradients = training.gradient_dtype,
        .master = training.master_dtype,
        .states = {optimizer_state_tensors(training.optimizer), training.optimizer_state_dtype},
        .per_parameter_gradients = options.generation == MegatronGeneration::lm_2021,
        .overlap_param_gather = options.overlap_param_gather,
        .offloaded = training.offload_optimizer == OffloadTarget::none ? 0 : training.offload_fraction};
    if (plan.distributed) {
        plan.shards = training.shard_group / options.num_distributed_optimizer_instances;
        if (training.shard_group == replicas / options.num_distributed_optimizer_instances)
            plan.shards = training.shard_group;
        const std::uint64_t expert_replicas = replicas * training.tensor_parallel /
                                              (training.expert_parallel * training.expert_tensor_parallel);
        plan.expert_shards = std::max<std::uint64_t>(1, expert_replicas * plan.shards / replicas);
    }
    // The optimizer reads fp32: gradients of another dtype are copied in every step.
    if (plan.master && bytes_per_element(plan.gradients) != 4) plan.main_gradients = DType::fp32;
    // An offloaded optimizer updates in fp32 (param_update_in_fp32), and its Adams know no other dtypes.
    if (options.use_precision_aware_optimizer && plan.offloaded == 0) {
        const bool remainders = options.store_param_remainders && options.main_params_dtype == DType::fp32 &&
                                plan.parameters == DType::bf16;
        if (plan.master) plan.master = remainders ? DType::bf16 : options.main_params_dtype;
        plan.main_gradients.reset();
        if (plan.states.size() == 2) plan.states = {options.exp_avg_dtype, options.exp_avg_sq_dtype};
    }
    plan.buffer = {.data_parallel = plan.shards,
                   .distributed_optimizer = plan.distributed,
                   .bucket_size = std::nullopt,
                   .pad_for_high_nccl_busbw = options.pad_buckets_for_high_nccl_busbw};
    if (options.overlap_grad_reduce)
        plan.buffer.bucket_size = options.ddp_bucket_size.value_or(default_bucket_size(replicas));
    return plan;
}

MegatronState::MegatronState(const StageModel& stage, const MegatronStatePlan& plan, bool first_stage)
    : model_(stage.model),
      plan_(plan),
      tied_copy_(stage.tied_copy),
      buffer_of_(stage.model.parameters.size()) {
    for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
        const std::uint32_t end = c + 1 < stage.chunks.size()
                                      ? stage.first_parameter[c + 1]
                                      : static_cast<std::uint32_t>(model_.parameters.size());
        std::vector<std::uint32_t> dense, experts;
        for (std::uint32_t p = stage.first_parameter[c]; p < end; ++p)
            if (!model_.parameters[p].shared_with)
                (is_expert(model_.parameters[p]) ? experts : dense).push_back(p);
        // Only the first chunk of the first stage is worth splitting into buckets.
        const bool bucketed = first_stage && c == 0;
        add_buffer(std::move(dense), plan_.shards, bucketed, false);
        if (!experts.empty()) add_buffer(std::move(experts), plan_.expert_shards, bucketed, true);
    }
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
        if (model_.parameters[p].shared_with) buffer_of_[p] = buffer_of_[*model_.parameters[p].shared_with];
}

/// A tied embedding's copy has a bucket of its own on both of its stages, which then cut it alike; one that
/// is tied inside a stage or not at all has none. source: LanguageModule.setup_embeddings_and_output_layer
/// (shared_embedding), DistributedOptimizer._compute_per_buffer_param_layout
void MegatronState::add_buffer(std::vector<std::uint32_t> members, std::uint64_t shards, bool bucketed,
                               bool experts) {
    std::vector<BufferedParameter> parameters;
    for (const std::uint32_t p : members) parameters.push_back({model_.parameters[p].numel, tied_copy_ == p});
    MegatronBufferOptions options = plan_.buffer;
    options.data_parallel = shards;
    if (!bucketed) options.bucket_size.reset();
    const auto index = static_cast<std::uint32_t>(buffers_.size());
    for (const std::uint32_t p : members) buffer_of_[p] = index;
    ChunkBuffer buffer{.members = std::move(members),
                       .layout = megatron_buffer(parameters, options),
                       .shards = shards,
                       .unit = static_cast<std::uint32_t>(model_.parameters.size()) + index};
    buffer.experts = experts;
    buffer.owned = buffer.layout.numel / (plan_.distributed ? shards : 1);
    buffers_.push_back(std::move(buffer));
}

ShardLayout MegatronState::layout() const {
    ShardLayout layout{.shard_group = plan_.shards};
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
        layout.units.push_back({.name = model_.parameters[p].name,
                                .parameters = {{p, 0}},
                                .numel = model_.parameters[p].numel,
                                .padded_numel = model_.parameters[p].numel});
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
        const ChunkBuffer& buffer = buffers_[b];
        UnitLayout unit{.name = fmt::format("buffer {}", b), .padded_numel = buffer.layout.numel};
        for (std::size_t i = 0; i < buffer.members.size(); ++i) {
            unit.parameters.push_back({buffer.members[i], buffer.layout.offsets[i]});
            unit.numel += model_.parameters[buffer.members[i]].numel;
        }
        layout.units.push_back(std::move(unit));
    }
    return layout;
}

Buffer MegatronState::of_parameter(BufferRole role, Category category, DType dtype, std::uint32_t parameter,
                                   std::uint64_t numel) const {
    return {.role = role, .category = category, .dtype = dtype, .owner = parameter, .elements = numel};
}

void MegatronState::load(ProgramBuilder& builder) {
    parameters_.assign(model_.parameters.size(), no_buffer);
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
        if (!model_.parameters[p].shared_with)
            parameters_[p] = builder.allocate(of_parameter(BufferRole::parameters, Category::parameters,
                                                           plan_.parameters, p, model_.parameters[p].numel));
    for (ChunkBuffer& buffer : buffers_) load_buffers(builder, buffer);
    choose_offloaded();
    const std::vector<BufferId> clones = clone_whole_parameters(builder);
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
        if (model_.parameters[p].shared_with) parameters_[p] = parameters_[*model_.parameters[p].shared_with];
    for (std::size_t b = 0; plan_.master && b < buffers_.size(); ++b) {
        for (const Piece& piece : pieces_[b]) {
            if (piece.on_host) continue;
            const BufferId master =
                builder.allocate(of_parameter(BufferRole::master_weights, Category::master_weights,
                                              *plan_.master, piece.parameter, piece.numel));
            if (buffers_[b].master == no_buffer) buffers_[b].master = master;
        }
    }
    for (const BufferId clone : clones) builder.free(clone);
}

/// With the distributed optimizer parameters move into the chunk's buffer, one after another.
void MegatronState::load_buffers(ProgramBuilder& builder, ChunkBuffer& buffer) {
    const auto whole = [&](BufferRole role, Category category, DType dtype) {
        return builder.allocate({.role = role,
                                 .category = category,
                                 .dtype = dtype,
                                 .owner = buffer.unit,
                                 .elements = buffer.layout.numel});
    };
    if (plan_.distributed)
        buffer.parameters = whole(BufferRole::parameters, Category::parameters, plan_.parameters);
    if (!plan_.per_parameter_gradients)
        buffer.gradients = whole(BufferRole::gradients, Category::gradients, plan_.gradients);
    if (plan_.distributed) {
        for (std::size_t i = buffer.members.size(); i-- > 0;) {
            builder.free(parameters_[buffer.members[i]]);
            parameters_[buffer.members[i]] = buffer.parameters;
        }
    } else if (!buffer.members.empty()) {
        buffer.parameters = parameters_[buffer.members.front()];
    }
    pieces_.push_back(pieces_of(buffer));
}

std::vector<MegatronState::Piece> MegatronState::pieces_of(const ChunkBuffer& buffer) const {
    std::vector<Piece> pieces;
    if (plan_.distributed) {
        std::vector<BufferedParameter> parameters;
        for (const std::uint32_t p : buffer.members)
            parameters.push_back({model_.parameters[p].numel, false});
        for (const OwnedPiece& piece : owned_pieces(buffer.layout, parameters, 0, buffer.shards))
            pieces.push_back({buffer.members[piece.parameter], piece.numel});
        // Optimizer groups list parameters in registration order.
        std::sort(pieces.begin(), pieces.end(),
                  [](const Piece& a, const Piece& b) { return a.parameter < b.parameter; });
    } else {
        for (const std::uint32_t p : buffer.members) pieces.push_back({p, model_.parameters[p].numel});
    }
    return pieces;
}

void MegatronState::initialise_optimizer(ProgramBuilder& builder) {
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
        for (const Piece& piece : pieces_[b]) {
            if (piece.on_host) continue;
            for (std::size_t s = 0; s < plan_.states.size(); ++s) {
                const BufferId state = builder.allocate(
                    of_parameter(s == 0 ? BufferRole::momentum : BufferRole::variance,
                                 Category::optimizer_states, plan_.states[s], piece.parameter, piece.numel));
                BufferId& first = s == 0 ? buffers_[b].momentum : buffers_[b].variance;
                if (first == no_buffer) first = state;
            }
        }
    }
    if (!plan_.per_parameter_gradients) return;
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
        if (!model_.parameters[p].shared_with)
            kept_gradients_.push_back(builder.allocate(of_parameter(
                BufferRole::gradients, Category::gradients, plan_.gradients, p, model_.parameters[p].numel)));
}

void MegatronState::allocate_main_gradients(ProgramBuilder& builder) {
    if (!plan_.main_gradients) return;
    for (auto& pieces : pieces_) {
        for (Piece& piece : pieces) {
            if (piece.on_host) continue;
            const Buffer buffer = of_parameter(BufferRole::gradients, Category::gradients,
                                               *plan_.main_gradients, piece.parameter, piece.numel);
            if (piece.main_gradient == no_buffer)
                piece.main_gradient = builder.allocate(buffer);
            else
                builder.allocate_again(piece.main_gradient);
        }
    }
}

void MegatronState::free_main_gradients(ProgramBuilder& builder) {
    if (!plan_.main_gradients) return;
    for (const auto& pieces : pieces_)
        for (const Piece& piece : pieces)
            if (!piece.on_host) builder.free(piece.main_gradient);
}

void MegatronState::renew_main_gradients(ProgramBuilder& builder) {
    if (!plan_.main_gradients) return;
    for (const auto& pieces : pieces_) {
        for (const Piece& piece : pieces) {
            if (piece.on_host) continue;
            const BufferId renewed = builder.allocate(builder.buffer(piece.main_gradient));
            builder.free(piece.main_gradient);
            builder.free(renewed);
            builder.allocate_again(piece.main_gradient);
        }
    }
}

GroupKind MegatronState::group_of(const ChunkBuffer& buffer) const {
    if (buffer.experts) return GroupKind::expert_data_group;
    return plan_.distributed ? GroupKind::shard_group : GroupKind::replica_group;
}

OperationId MegatronState::reduce(ProgramBuilder& builder, const ChunkBuffer& buffer,
                                  std::uint64_t elements) const {
    return builder.on_stream(
        Stream::reduce,
        Collective{.kind = plan_.distributed ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                   .group = group_of(buffer),
                   .send = {buffer.gradients, false},
                   .receive = {buffer.gradients, plan_.distributed},
                   .dtype = plan_.gradients,
                   .elements = elements,
                   .unit = buffer.unit},
        builder.last(Stream::compute));
}

OperationId MegatronState::gather(ProgramBuilder& builder, const ChunkBuffer& buffer,
                                  std::vector<OperationId> waits) const {
    return builder.on_stream(Stream::gather,
                             Collective{.kind = CollectiveKind::all_gather,
                                        .group = group_of(buffer),
                                        .send = {buffer.parameters, true},
                                        .receive = {buffer.parameters, false},
                                        .dtype = plan_.parameters,
                                        .elements = buffer.layout.numel,
                                        .unit = buffer.unit},
                             std::move(waits));
}

void MegatronState::gradient_ready(ProgramBuilder& builder, std::uint32_t parameter) {
    ChunkBuffer& buffer = buffers_[buffer_of_[parameter]];
    if (!plan_.buffer.bucket_size || buffer.gradients == no_buffer) return;
    if (model_.parameters[parameter].shared_with) return;
    buffer.ready += model_.parameters[parameter].numel;
    if (buffer.ready - buffer.reduced < *plan_.buffer.bucket_size) return;
    reduce(builder, buffer, buffer.ready - buffer.reduced);
    buffer.reduced = buffer.ready;
}

void MegatronState::gather_parameters(ProgramBuilder& builder) {
    if (!plan_.distributed || !plan_.overlap_param_gather) return;
    for (const ChunkBuffer& buffer : buffers_) gather(builder, buffer, {});
}

OperationId MegatronState::step_on_device(ProgramBuilder& builder, const ChunkBuffer& buffer) const {
    return builder.on_stream(Stream::compute,
                             OptimizerStep{.unit = buffer.unit,
                                           .parameters = {buffer.parameters, plan_.distributed},
                                           .gradients = {buffer.gradients, plan_.distributed},
                                           .master = {buffer.master, false},
                                           .momentum = {buffer.momentum, false},
                                           .variance = {buffer.variance, false},
                                           .elements = buffer.owned - buffer.on_host},
                             builder.last(buffer.gradients != no_buffer ? Stream::reduce : Stream::compute));
}

/// Every chunk's gradients, after which those of a tied embedding's copies are summed over both stages: of
/// the whole weight even where the buffer has been reduce-scattered. The part that the rank owns is complete
/// then, and the same on both stages. source: megatron/core/distributed/finalize_model_grads.py
void MegatronState::finish_gradients(ProgramBuilder& builder) {
    for (ChunkBuffer& buffer : buffers_) {
        if (buffer.gradients != no_buffer && buffer.reduced < buffer.layout.numel)
            reduce(builder, buffer, buffer.layout.numel - buffer.reduced);
        buffer.ready = buffer.reduced = 0;
    }
    if (tied_copy_ && !plan_.per_parameter_gradients)
        all_reduce_tied_gradient(builder, Stream::reduce,
                                 {*tied_copy_, gradient_buffer(*tied_copy_), plan_.gradients,
                                  model_.parameters[*tied_copy_].numel});
}

/// Parameters are gathered in place, a buffer at a time; an optimizer that is partly on the host is one for
/// all buffers.
void MegatronState::append_step(ProgramBuilder& builder, const TrainingConfig& training) {
    const bool gathers = plan_.distributed && !plan_.overlap_param_gather;
    finish_gradients(builder);
    for (const ChunkBuffer& buffer : buffers_) {
        if (plan_.offloaded > 0) break;
        const OperationId stepped = step_on_device(builder, buffer);
        if (gathers) gather(builder, buffer, {stepped});
    }
    if (plan_.offloaded == 0) return;
    step_on_host(builder, training);
    for (const ChunkBuffer& buffer : buffers_)
        if (gathers) gather(builder, buffer, builder.last(Stream::compute));
}

}  // namespace zeroplan
