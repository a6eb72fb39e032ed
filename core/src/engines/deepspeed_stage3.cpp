#include "engines/deepspeed_stage3.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engines/parameter_storage.hpp"

namespace zeroplan {

std::vector<SubGroup> sub_groups(const ModelSpec& model, std::uint64_t ranks, std::uint64_t sub_group_size) {
    std::vector<SubGroup> groups;
    bool full = true;
    for (std::uint32_t p = 0; p < model.parameters.size(); ++p) {
        const Parameter& parameter = model.parameters[p];
        if (!parameter.trainable || parameter.shared_with) continue;
        if (full) groups.emplace_back();
        groups.back().parameters.push_back(p);
        groups.back().numel += stage3_shard_numel(parameter.numel, ranks);
        full = groups.back().numel >= sub_group_size;
    }
    return groups;
}

DType stage3_master_dtype(const DeepSpeedRank& rank) {
    const bool narrow = rank.options.sixteen_bit_master || !rank.training.master_dtype;
    return narrow ? rank.training.parameter_dtype : DType::fp32;
}

std::size_t sub_groups_on_device(const TrainingConfig& training, std::size_t count) {
    if (training.offload_optimizer != OffloadTarget::cpu) return 0;
    return static_cast<std::size_t>((1 - training.offload_fraction) * static_cast<double>(count));
}

DeepSpeedStage3::DeepSpeedStage3(const DeepSpeedRank& rank, ProgramBuilder& builder,
                                 std::vector<ModuleVisit> trace)
    : rank_(rank),
      builder_(builder),
      coordinator_(rank, builder, std::move(trace)),
      groups_(sub_groups(rank.model, rank.ranks, rank.options.sub_group_size)),
      shards_(rank.model.parameters.size(), no_buffer),
      persistent_(rank.model.parameters.size(), no_buffer) {
    for (const SubGroup& group : groups_) trained_numel_ += group.numel;
}

// --- what stays

/// zero.Init: every parameter is partitioned as soon as it is made. Without it, deepspeed.initialize moves
/// the whole module to the device before it partitions one parameter after another. source:
/// DeepSpeedEngine._configure_distributed_model, DeepSpeedZeRoOffload._convert_to_zero_parameters.
void DeepSpeedStage3::load() {
    std::vector<BufferId> module;
    if (!rank_.options.zero_init)
        for (std::uint32_t p = 0; p < shards_.size(); ++p)
            module.push_back(rank_.model.parameters[p].shared_with ? no_buffer : make_whole(p));
    for (std::uint32_t p = 0; p < shards_.size(); ++p) {
        if (rank_.model.parameters[p].shared_with) continue;
        const BufferId made = module.empty() ? make_whole(p) : module[p];
        if (!parameters_on_host()) {
            const StoredAs as = loaded_as(p);
            Buffer whole = builder_.buffer(made);
            whole.elements = as.elements(shard(p));
            shards_[p] = builder_.allocate(whole);
            if (!is_frozen(p)) loaded_.push_back(shards_[p]);
        }
        builder_.free(made);
    }
}

StoredAs DeepSpeedStage3::loaded_as(std::uint32_t p) const {
    if (is_frozen(p) && rank_.options.quantized_nontrainable_weights) return {DType::uint8};
    return stored_as(rank_.model.parameters[p], rank_.training.parameter_dtype);
}

BufferId DeepSpeedStage3::make_whole(std::uint32_t p) {
    const StoredAs as = loaded_as(p);
    return builder_.allocate({.role = BufferRole::parameters,
                              .category = Category::parameters,
                              .dtype = as.dtype,
                              .owner = p,
                              .elements = as.elements(shard(p) * rank_.ranks)});
}

void DeepSpeedStage3::init() {
    load_shards();
    load_persistent();
    for (std::size_t g = 0; g < groups_.size(); ++g) initialise_sub_group(g);
    allocate_error_feedback();
    if (rank_.options.rules.keeps_stage3_gradients) allocate_gradients();
    coordinator_.use(persistent_, shards_);
}

/// defragment: the shards are gathered on the host, so that the one buffer takes their place.
void DeepSpeedStage3::load_shards() {
    if (parameters_on_host()) return;
    for (const BufferId loaded : loaded_) builder_.free(loaded);
    if (trained_numel_ == 0) return;
    const BufferId all = builder_.allocate(
        flat(BufferRole::parameters, Category::parameters, rank_.training.parameter_dtype, trained_numel_));
    for (const SubGroup& group : groups_)
        for (const std::uint32_t p : group.parameters) shards_[p] = all;
}

void DeepSpeedStage3::load_persistent() {
    for (std::uint32_t p = 0; p < persistent_.size(); ++p)
        if (coordinator_.is_persistent(p))
            persistent_[p] = builder_.allocate(
                {.role = BufferRole::gathered_parameters,
                 .category = Category::gathered_parameters,
                 .dtype = stored_as(rank_.model.parameters[p], rank_.training.parameter_dtype).dtype,
                 .owner = p,
                 .elements = shard(p) * rank_.ranks});
}

void DeepSpeedStage3::initialise_sub_group(std::size_t index) {
    masters_.push_back(no_buffer);
    wide_gradients_.push_back(no_buffer);
    states_.emplace_back();
    if (steps_on_host(index)) return;
    const SubGroup& group = groups_[index];
    const DType dtype = stage3_master_dtype(rank_);
    masters_.back() =
        builder_.allocate(flat(BufferRole::master_weights, Category::master_weights, dtype, group.numel));
    if (offloads_optimizer(rank_))
        wide_gradients_.back() =
            builder_.allocate(flat(BufferRole::gradients, Category::gradients, dtype, group.numel));
    else  // a zero gradient for the optimizer's first look
        take_and_give_back(builder_, Category::gradients, dtype, group.numel);
    states_.back() = declare_flat_states(rank_, builder_, group.numel, group.parameters);
    for (const BufferId state : states_.back()) {
        if (rank_.options.rules.states_at_init)
            builder_.allocate_again(state);
        else
            lazy_states_.push_back(state);
    }
}

/// LoCo keeps what quantising has cut off of every matrix's gradient, in 8 bits: whole for the hop inside a
/// node, and a local rank's part for the one between nodes. source: coalesced_collectives.py,
/// all_to_all_loco_quant_reduce
void DeepSpeedStage3::allocate_error_feedback() {
    if (!rank_.options.loco) return;
    std::uint64_t elements = 0;
    for (const SubGroup& group : groups_)
        for (const std::uint32_t p : group.parameters)
            if (const Parameter& parameter = rank_.model.parameters[p]; parameter.shape.size() > 1)
                elements += parameter.numel + parameter.numel / rank_.options.ranks_per_node;
    if (elements > 0)
        builder_.allocate(flat(BufferRole::workspace, Category::gradients, DType::uint8, elements));
}

/// grad_partitions_flat_buffer, and the bucket that is allocated once (stage3.py, __init__). Older versions
/// made both in every backward.
void DeepSpeedStage3::allocate_gradients() {
    if (buckets_.empty() && rank_.options.contiguous_gradients) {
        const std::size_t count =
            rank_.options.overlap_comm && !rank_.options.rules.keeps_stage3_gradients ? 2 : 1;
        for (std::size_t i = 0; i < count; ++i)
            buckets_.push_back(
                builder_.allocate(flat(BufferRole::gradient_bucket, Category::communication_buffers,
                                       rank_.training.reduce_dtype, rank_.options.reduce_bucket_size)));
    }
    if (gradients_ == no_buffer && !offloads_optimizer(rank_) && trained_numel_ > 0)
        gradients_ = builder_.allocate(
            flat(BufferRole::gradients, Category::gradients, rank_.training.gradient_dtype, trained_numel_));
}

// --- gradients

void DeepSpeedStage3::gradient_ready(std::uint32_t p, BufferId gradient) {
    allocate_gradients();
    const std::uint64_t numel = rank_.model.parameters[p].numel, most = rank_.options.reduce_bucket_size;
    if (elements_in_bucket_ + numel > most) reduce_bucket();
    elements_in_bucket_ += numel;
    if (numel > most || !rank_.options.contiguous_gradients) {
        in_bucket_.push_back({p, gradient});
        return;
    }
    builder_.on_stream(Stream::compute, Accumulate{.from = {gradient}, .to = {buckets_.front()}, .unit = p},
                       builder_.last(Stream::reduce));
    builder_.free(gradient);
    in_bucket_.push_back({p, no_buffer});
}

std::uint64_t DeepSpeedStage3::padded_in_bucket() const {
    std::uint64_t elements = 0;
    for (const InBucket& entry : in_bucket_) elements += shard(entry.parameter) * rank_.ranks;
    return elements;
}

/// reduce_scatter_coalesced: the gradients, padded to the ranks, are joined in a flat tensor, whose own
/// slices are then added to the gradient shards. A single one that divides evenly is reduced where it is.
void DeepSpeedStage3::reduce_bucket() {
    if (in_bucket_.empty()) return;
    const std::uint64_t elements = padded_in_bucket();
    const bool alone = in_bucket_.size() == 1 && elements == elements_in_bucket_;
    const bool joins = rank_.options.reduce_scatter && !alone;
    const Stream stream = rank_.options.overlap_comm ? Stream::reduce : Stream::compute;
    const BufferId bucket = in_bucket_.front().own != no_buffer ? in_bucket_.front().own : buckets_.front();
    BufferId operand = bucket;
    if (joins || rank_.options.quantized_gradients) {
        // qgZ sends four bits an element.
        const bool quantised = rank_.options.quantized_gradients;
        operand = builder_.allocate(
            flat(BufferRole::gradient_bucket, Category::communication_buffers,
                 quantised ? DType::uint8 : rank_.training.reduce_dtype, quantised ? elements / 2 : elements),
            stream);
        builder_.on_stream(stream, Accumulate{.from = {bucket}, .to = {operand}},
                           builder_.last(Stream::compute));
    }
    builder_.on_stream(stream,
                       Collective{.kind = rank_.options.reduce_scatter ? CollectiveKind::reduce_scatter
                                                                       : CollectiveKind::all_reduce,
                                  .group = GroupKind::shard_group,
                                  .send = {operand},
                                  .receive = {operand, rank_.options.reduce_scatter},
                                  .dtype = builder_.buffer(operand).dtype,
                                  .elements = rank_.options.quantized_gradients ? elements / 2 : elements,
                                  .unit = flat_unit(rank_.model)},
                       builder_.last(Stream::compute));
    if (gradients_ != no_buffer)
        builder_.on_stream(stream, Accumulate{.from = {operand, true},
                                              .to = {gradients_},
                                              .elements = operand == bucket ? elements / rank_.ranks : 0});
    if (offloads_optimizer(rank_)) send_to_host(stream, elements / rank_.ranks);
    orthogonalise_bucket(stream);
    const std::vector<OperationId> after = builder_.last(stream);
    if (operand != bucket) joined_.push_back({operand, after});
    for (const InBucket& entry : in_bucket_)
        if (entry.own != no_buffer) joined_.push_back({entry.own, after});
    in_bucket_.clear();
    elements_in_bucket_ = 0;
    // max_param_reduce_events: the host lets two reductions be under way.
    free_joined(rank_.options.overlap_comm ? 2 : 0);
}

void DeepSpeedStage3::free_joined(std::size_t keep) {
    while (joined_.size() > keep) {
        builder_.free(joined_.front().buffer, joined_.front().after);
        joined_.pop_front();
    }
}

void DeepSpeedStage3::end_backward(bool last) {
    reduce_bucket();
    free_joined(0);
    coordinator_.end_micro_batch();
    if (last && rank_.replicas > 1 && gradients_ != no_buffer)
        builder_.on_stream(Stream::reduce,
                           Collective{.kind = CollectiveKind::all_reduce,
                                      .group = GroupKind::replica_group,
                                      .send = {gradients_},
                                      .receive = {gradients_},
                                      .dtype = rank_.training.gradient_dtype,
                                      .elements = trained_numel_,
                                      .unit = flat_unit(rank_.model)},
                           builder_.last(Stream::compute));
    if (rank_.options.rules.keeps_stage3_gradients) return;
    for (const BufferId bucket : std::exchange(buckets_, {}))
        builder_.free(bucket, builder_.last(Stream::reduce));
}

// --- step

OperationId DeepSpeedStage3::step() {
    builder_.wait_for_all();
    if (!offloads_optimizer(rank_)) {
        std::uint64_t largest = 0;
        for (const SubGroup& group : groups_)
            for (const std::uint32_t p : group.parameters) largest = std::max(largest, shard(p));
        // has_overflow: a flag an element of the gradient buffer; norm: an fp64 copy a shard.
        take_and_give_back(builder_, Category::temporaries, DType::uint8, 2 * trained_numel_);
        take_and_give_back(builder_, Category::temporaries, DType::fp32, 2 * largest);
    }
    const OperationId position = builder_.next();
    for (std::size_t g = 0; g < masters_.size(); ++g) {
        if (steps_on_host(g)) continue;
        if (offloads_optimizer(rank_))
            step_resident(g);
        else
            step_sub_group(g);
    }
    if (offloads_optimizer(rank_)) step_on_host();
    if (!rank_.options.rules.keeps_stage3_gradients && gradients_ != no_buffer)
        builder_.free(std::exchange(gradients_, no_buffer));
    coordinator_.drop_secondary_shards();
    return position;
}

namespace {

/// "model.layers.0.mlp.up_proj" of a weight or bias.
std::string_view module_of(const Parameter& parameter) {
    return std::string_view(parameter.name).substr(0, parameter.name.rfind('.'));
}

}  // namespace

/// source: DeepSpeedEngine._zero3_consolidated_16bit_state_dict (GatheredParameters of a module).
void DeepSpeedStage3::save() {
    if (!rank_.options.gather_16bit_weights_on_model_save) return;
    std::vector<BufferId> module;
    const auto release = [&] {
        for (const BufferId whole : std::exchange(module, {}))
            builder_.free(whole, builder_.last(Stream::gather));
    };
    for (std::uint32_t p = 0; p < shards_.size(); ++p) {
        const Parameter& parameter = rank_.model.parameters[p];
        if (p > 0 && module_of(parameter) != module_of(rank_.model.parameters[p - 1])) release();
        if (parameter.shared_with || coordinator_.is_persistent(p)) continue;
        const Buffer whole{.role = BufferRole::consolidated,
                           .category = Category::gathered_parameters,
                           .dtype = loaded_as(p).dtype,
                           .owner = p,
                           .elements = shard(p) * rank_.ranks};
        module.push_back(builder_.allocate(whole, Stream::gather));
        builder_.on_stream(Stream::gather,
                           Collective{.kind = CollectiveKind::all_gather,
                                      .group = GroupKind::shard_group,
                                      .send = {shards_[p] != no_buffer ? shards_[p] : module.back()},
                                      .receive = {module.back()},
                                      .dtype = whole.dtype,
                                      .elements = whole.elements,
                                      .unit = p});
    }
    release();
}

/// _prepare_sub_group … _release_sub_group: the sub-group's gradients flat, then wide.
void DeepSpeedStage3::step_sub_group(std::size_t index) {
    const std::uint64_t numel = groups_[index].numel;
    BufferId gradients = builder_.allocate(
        flat(BufferRole::gradients, Category::gradients, rank_.training.gradient_dtype, numel));
    const DType master = builder_.buffer(masters_[index]).dtype;
    if (master != rank_.training.gradient_dtype) {
        const BufferId wide =
            builder_.allocate(flat(BufferRole::gradients, Category::gradients, master, numel));
        builder_.free(gradients);
        gradients = wide;
    }
    flat_optimizer_step(rank_, builder_, masters_[index], gradients, states_[index], numel);
    builder_.free(gradients);
}

}  // namespace zeroplan
