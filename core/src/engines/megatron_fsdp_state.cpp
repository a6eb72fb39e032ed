#include "engines/megatron_fsdp_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engines/tied_embedding.hpp"

namespace zeroplan {

std::uint64_t FsdpBuffers::owned() const {
    return std::accumulate(pieces.begin(), pieces.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const FsdpPiece& piece) { return sum + piece.numel(); });
}

MegatronFsdpState::MegatronFsdpState(const StageModel& stage, const MegatronFsdpPlan& plan)
    : model_(stage.model),
      plan_(plan),
      tied_copy_(stage.tied_copy),
      place_of_(stage.model.parameters.size()) {
    auto owner = static_cast<std::uint32_t>(model_.parameters.size());
    for (std::uint32_t c = 0; c < stage.chunks.size(); ++c) {
        const std::uint32_t end = c + 1 < stage.chunks.size()
                                      ? stage.first_parameter[c + 1]
                                      : static_cast<std::uint32_t>(model_.parameters.size());
        const FsdpBucketOptions options{
            .pads = plan.shards_states,
            .shards = plan.shards_states ? plan.shards : 1,
            .expert_shards = plan.shards_states ? plan.expert_shards : 1,
            .bucket_size = c == 0 ? plan.bucket_size : std::nullopt,
            .shared_embedding = plan.shards_states ? stage.tied_copy : std::nullopt};
        FsdpChunk chunk;
        for (FsdpBucket& bucket : fsdp_buckets(model_, stage.first_parameter[c], end, options)) {
            for (const std::uint32_t p : bucket.parameters)
                place_of_[p] = {c, static_cast<std::uint32_t>(chunk.size())};
            FsdpBuffers& buffers = chunk.emplace_back();
            buffers.layout = std::move(bucket);
            buffers.owner = owner++;
        }
        chunks_.push_back(std::move(chunk));
    }
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
        if (model_.parameters[p].shared_with) place_of_[p] = place_of_[*model_.parameters[p].shared_with];
    choose_ranks();
}

/// Ranks differ by what padding leaves them: the program stands for one that owns most.
void MegatronFsdpState::choose_ranks() {
    for (const bool experts : {false, true}) {
        std::vector<const FsdpBucket*> buckets;
        for (const FsdpChunk& chunk : chunks_)
            for (const FsdpBuffers& bucket : chunk)
                if (bucket.layout.experts == experts) buckets.push_back(&bucket.layout);
        if (buckets.empty()) continue;
        const std::uint64_t rank = rank_that_owns_most(model_, buckets, buckets.front()->shards);
        for (FsdpChunk& chunk : chunks_)
            for (FsdpBuffers& bucket : chunk)
                if (bucket.layout.experts == experts) {
                    bucket.rank = rank;
                    bucket.pieces = fsdp_pieces(model_, bucket.layout, rank);
                }
    }
}

ShardLayout MegatronFsdpState::layout() const {
    ShardLayout layout{.shard_group = plan_.shards_states ? plan_.shards : 1};
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
        layout.units.push_back({.name = model_.parameters[p].name,
                                .parameters = {{p, 0}},
                                .numel = model_.parameters[p].numel,
                                .padded_numel = model_.parameters[p].numel});
    for (std::size_t c = 0; c < chunks_.size(); ++c)
        for (const FsdpBuffers& bucket : chunks_[c]) {
            const FsdpBucket& from = bucket.layout;
            std::string name =
                from.unit ? model_.blocks[*from.unit].name : fmt::format("rest of chunk {}", c);
            if (from.experts) name += " experts";
            UnitLayout unit{.name = std::move(name), .padded_numel = from.numel};
            for (std::size_t i = 0; i < from.parameters.size(); ++i) {
                unit.parameters.push_back({from.parameters[i], from.offsets[i]});
                unit.numel += model_.parameters[from.parameters[i]].numel;
            }
            layout.units.push_back(std::move(unit));
        }
    return layout;
}

Buffer MegatronFsdpState::buffer(const FsdpBuffers& bucket, BufferRole role, Category category, DType dtype,
                                 std::uint64_t elements) const {
    return {.role = role, .category = category, .dtype = dtype, .owner = bucket.owner, .elements = elements};
}

Buffer MegatronFsdpState::of_piece(const FsdpPiece& piece, BufferRole role, Category category,
                                   DType dtype) const {
    return {.role = role,
            .category = category,
            .dtype = dtype,
            .owner = piece.parameter,
            .elements = piece.numel()};
}

GroupKind MegatronFsdpState::group_of(const FsdpBuffers& bucket) const {
    if (bucket.layout.experts) return GroupKind::expert_data_group;
    return plan_.shards_states ? GroupKind::shard_group : GroupKind::replica_group;
}

void MegatronFsdpState::load(ProgramBuilder& builder) {
    parameters_.assign(model_.parameters.size(), no_buffer);
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
        if (!model_.parameters[p].shared_with)
            parameters_[p] = builder.allocate({.role = BufferRole::parameters,
                                               .category = Category::parameters,
                                               .dtype = plan_.parameters,
                                               .owner = p,
                                               .elements = model_.parameters[p].numel});
    for (FsdpChunk& chunk : chunks_)
        for (FsdpBuffers& bucket : chunk) load_bucket(builder, bucket);
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p)
        if (model_.parameters[p].shared_with) parameters_[p] = parameters_[*model_.parameters[p].shared_with];
    allocate_gradients(builder);
}

void MegatronFsdpState::load_bucket(ProgramBuilder& builder, FsdpBuffers& bucket) {
    const auto allocate = [&](BufferRole role, Category category, DType dtype, std::uint64_t elements) {
        return builder.allocate(buffer(bucket, role, category, dtype, elements));
    };
    const bool sharded = shards_parameters(bucket);
    BufferId whole = no_buffer;
    if (plan_.shards_states)
        bucket.weights = allocate(BufferRole::parameters, Category::parameters, plan_.parameters,
                                  sharded ? bucket.slice() : bucket.layout.numel);
    if (sharded)
        whole = allocate(BufferRole::gathered_parameters, Category::gathered_parameters, plan_.parameters,
                         bucket.layout.numel);
    if (plan_.master)
        bucket.master = allocate(BufferRole::master_weights, Category::master_weights, *plan_.master,
                                 plan_.shards_states ? bucket.slice() : bucket.layout.numel);
    if (!plan_.shards_states) {
        bucket.weights = parameters_[bucket.layout.parameters.front()];
        return;
    }
    for (const std::uint32_t p : bucket.layout.parameters) {
        builder.free(parameters_[p]);
        parameters_[p] = no_buffer;
    }
    if (!sharded)
        bucket.gathered = bucket.weights;
    else if (bucket.layout.unit)
        builder.free(whole);
    else
        bucket.gathered = whole;  // what belongs to no unit stays gathered from the first forward on
}

/// Gradients of all buckets are slices of one tensor, so that only their sum is rounded.
void MegatronFsdpState::allocate_gradients(ProgramBuilder& builder) {
    for (FsdpChunk& chunk : chunks_)
        for (FsdpBuffers& bucket : chunk)
            bucket.gradients =
                builder.allocate(buffer(bucket, BufferRole::gradients, Category::gradients, plan_.gradients,
                                        plan_.shards_gradients ? bucket.slice() : bucket.layout.numel));
}

void MegatronFsdpState::initialise_optimizer(ProgramBuilder& builder) {
    for (FsdpChunk& chunk : chunks_)
        for (FsdpBuffers& bucket : chunk)
            for (const FsdpPiece& piece : bucket.pieces)
                for (std::size_t s = 0; s < plan_.states.size(); ++s) {
                    const BufferId state =
                        builder.allocate(of_piece(piece, s == 0 ? BufferRole::momentum : BufferRole::variance,
                                                  Category::optimizer_states, plan_.states[s]));
                    BufferId& first = s == 0 ? bucket.momentum : bucket.variance;
                    if (first == no_buffer) first = state;
                }
}

void MegatronFsdpState::allocate_main_gradients(ProgramBuilder& builder) {
    if (!plan_.main_gradients) return;
    for (FsdpChunk& chunk : chunks_)
        for (FsdpBuffers& bucket : chunk) {
            if (!bucket.main_gradients.empty()) {
                for (const BufferId copy : bucket.main_gradients) builder.allocate_again(copy);
                continue;
            }
            for (const FsdpPiece& piece : bucket.pieces)
                bucket.main_gradients.push_back(builder.allocate(
                    of_piece(piece, BufferRole::gradients, Category::gradients, *plan_.main_gradients)));
        }
}

void MegatronFsdpState::free_main_gradients(ProgramBuilder& builder) {
    for (const FsdpChunk& chunk : chunks_)
        for (const FsdpBuffers& bucket : chunk)
            for (const BufferId copy : bucket.main_gradients) builder.free(copy);
}

/// Of what the rank owns, which is the same on both stages: the weight has a bucket of its own. Behind the
/// bucket's padding ranks own less; rank 0's share stands for all. source:
/// megatron/core/distributed/finalize_model_grads.py (_allreduce_embedding_grad), param_and_grad_buffer.py
/// (update_main_grads)
void MegatronFsdpState::reduce_tied_copy(ProgramBuilder& builder) const {
    if (!tied_copy_) return;
    const auto [chunk, index] = place_of_[*tied_copy_];
    const FsdpBuffers& bucket = chunks_[chunk][index];
    const std::uint64_t numel = model_.parameters[*tied_copy_].numel;
    BufferId gradient = bucket.gradients;
    for (std::size_t i = 0; i < bucket.main_gradients.size(); ++i)
        if (bucket.pieces[i].parameter == *tied_copy_) gradient = bucket.main_gradients[i];
    all_reduce_tied_gradient(builder, Stream::reduce,
                             {*tied_copy_, gradient, plan_.main_gradients.value_or(plan_.gradients),
                              plan_.shards_states ? std::min(numel, bucket.slice()) : numel});
    builder.hold(Stream::compute, builder.last(Stream::reduce).front());
}

void MegatronFsdpState::step_optimizer(ProgramBuilder& builder) {
    const bool slice_of_weights = plan_.shards_states && !plan_.shards_parameters;
    const bool slice_of_gradients = plan_.shards_states && !plan_.shards_gradients;
    for (const FsdpChunk& chunk : chunks_)
        for (const FsdpBuffers& bucket : chunk)
            builder.on_stream(Stream::compute,
                              OptimizerStep{.unit = bucket.owner,
                                            .parameters = {bucket.weights, slice_of_weights},
                                            .gradients = {bucket.gradients, slice_of_gradients},
                                            .master = {bucket.master, false},
                                            .momentum = {bucket.momentum, false},
                                            .variance = {bucket.variance, false},
                                            .elements = bucket.owned()});
}

BufferId MegatronFsdpState::parameter(std::uint32_t index) const {
    if (!plan_.shards_states) return parameters_[index];
    const auto [chunk, bucket] = place_of_[index];
    return chunks_[chunk][bucket].gathered;
}

}  // namespace zeroplan
