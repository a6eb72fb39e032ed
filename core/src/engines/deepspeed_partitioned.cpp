#include "engines/deepspeed_partitioned.hpp"

#include <algorithm>
#include <utility>

#include "engines/deepspeed_states.hpp"
#include "engines/host_copies.hpp"

namespace zeroplan {

DType partitioned_master_dtype(const DeepSpeedRank& rank) {
    const bool stated = rank.training.master_dtype || bytes_per_element(rank.training.parameter_dtype) == 4;
    return rank.options.sixteen_bit_master || !stated ? rank.training.parameter_dtype : DType::fp32;
}

DeepSpeedPartitioned::DeepSpeedPartitioned(const DeepSpeedRank& rank, ProgramBuilder& builder)
    : rank_(rank),
      builder_(builder),
      parameters_(rank, builder),
      share_(rank.share),
      overlaps_(rank.model.parameters.size(), false),
      owned_elements_(rank.model.parameters.size(), 0),
      kept_(rank.model.parameters.size(), no_buffer) {
    for (const std::uint32_t p : share_.parameters) overlaps_[p] = true;
    const std::uint64_t begin = rank.rank * rank.group.partition(), end = begin + rank.group.partition();
    for (const PlacedParameter& placed : rank.group.parameters) {
        const std::uint64_t behind = placed.offset + rank.model.parameters[placed.parameter].numel;
        const std::uint64_t first = std::max(begin, placed.offset), last = std::min(end, behind);
        owned_elements_[placed.parameter] = last > first ? last - first : 0;
    }
}

void DeepSpeedPartitioned::init() {
    parameters_.flatten(0);
    const std::uint64_t partition = rank_.group.partition();
    if (offloads_optimizer(rank_)) {
        // temp_grad_buffer_for_gpu_offload
        std::uint64_t largest = 0;
        for (const PlacedParameter& placed : rank_.group.parameters)
            largest = std::max(largest, rank_.model.parameters[placed.parameter].numel);
        builder_.allocate(flat_buffer(rank_, BufferRole::gradients, Category::temporaries,
                                      rank_.training.parameter_dtype, largest));
        return;
    }
    master_ = builder_.allocate(
        flat_buffer(rank_, BufferRole::master_weights, Category::master_weights, master_dtype(), partition));
    const BufferId zeros = builder_.allocate(
        flat_buffer(rank_, BufferRole::gradients, Category::gradients, master_dtype(), partition));
    states_ = declare_flat_states(rank_, builder_, partition);
    if (rank_.options.rules.states_at_init)
        for (const BufferId state : states_) builder_.allocate_again(state);
    else
        lazy_states_ = states_;
    builder_.free(zeros);
}

// --- gradients

void DeepSpeedPartitioned::allocate_buckets() {
    if (!rank_.options.contiguous_gradients) return;
    const std::size_t count = rank_.options.overlap_comm ? 2 : 1;
    while (buckets_.size() < count)
        buckets_.push_back(
            builder_.allocate(flat_buffer(rank_, BufferRole::gradient_bucket, Category::communication_buffers,
                                          rank_.training.parameter_dtype, rank_.options.bucket_elements())));
}

void DeepSpeedPartitioned::free_buckets() {
    for (const BufferId bucket : std::exchange(buckets_, {})) builder_.free(bucket);
    filling_ = 0;
}

void DeepSpeedPartitioned::begin_backward(bool last) {
    last_ = last;
    reducing_ = reduces_in_backward(last);
}

void DeepSpeedPartitioned::gradient_ready(std::uint32_t p, BufferId gradient) {
    // setup_buckets: at the first gradient of every backward, whoever reduces; a pipeline's are made for the
    // reduction alone.
    if (!rank_.pipelined) allocate_buckets();
    if (!reducing_) return keep(p, gradient);
    if (kept_[p] != no_buffer) {
        keep(p, gradient);
        gradient = std::exchange(kept_[p], no_buffer);
    }
    add_to_bucket(p, gradient);
}

void DeepSpeedPartitioned::keep(std::uint32_t p, BufferId gradient) {
    if (kept_[p] == no_buffer && !keeps_wide_gradients()) {
        kept_[p] = gradient;
        return;
    }
    if (kept_[p] == no_buffer) {
        Buffer wide = builder_.buffer(gradient);
        wide.dtype = rank_.training.gradient_dtype;
        kept_[p] = builder_.allocate(wide);
    }
    builder_.on_stream(Stream::compute,
                       Accumulate{.from = {gradient}, .to = {kept_[p]}, .unit = p, .always_add = true});
    builder_.free(gradient);
}

void DeepSpeedPartitioned::add_to_bucket(std::uint32_t p, BufferId gradient) {
    const std::uint64_t numel = rank_.model.parameters[p].numel, most = rank_.options.reduce_bucket_size;
    if (elements_in_bucket_ + numel > most) {
        reduce_bucket();
        if (buckets_.size() == 2) filling_ = 1 - filling_;
    }
    elements_in_bucket_ += numel;
    // Larger than the bucket: reduced in place, alone.
    if (numel > most || !rank_.options.contiguous_gradients) {
        in_bucket_.push_back({p, gradient});
        return;
    }
    builder_.on_stream(Stream::compute,
                       Accumulate{.from = {gradient}, .to = {buckets_[filling_]}, .unit = p});
    builder_.free(gradient);
    in_bucket_.push_back({p, no_buffer});
}

void DeepSpeedPartitioned::reduce_bucket() {
    if (in_bucket_.empty()) return;
    // allreduce_and_copy: synchronize.
    if (overlaps() && (!rank_.options.contiguous_gradients || !rank_.options.multi_rank_bucket_allreduce))
        builder_.wait_for_all();
    free_reduced();
    const std::vector<OperationId> taken = flatten_and_reduce();
    for (const InBucket& entry : in_bucket_)
        if (overlaps_[entry.parameter] && rank_.options.contiguous_gradients) copy_to_partition(entry);
    for (const InBucket& entry : in_bucket_)
        if (entry.own != no_buffer) give_up_own(entry, taken);
    in_bucket_.clear();
    elements_in_bucket_ = 0;
}

/// Where streams overlap, memory that the reduction still uses is there for others once it has ended
/// (record_stream, previous_reduced_grads): at the next one, which nothing overtakes.
void DeepSpeedPartitioned::give_up_own(const InBucket& entry, const std::vector<OperationId>& taken) {
    const bool contiguous = rank_.options.contiguous_gradients, owns = overlaps_[entry.parameter];
    if (owns && !contiguous)
        owned_.push_back(entry.own);
    else if (!is_stage_2() && !contiguous)
        left_over_.push_back(entry.own);
    else if (overlaps() && (owns || !contiguous))
        reduced_.push_back(entry.own);
    else
        builder_.free(entry.own, taken);
}

void DeepSpeedPartitioned::free_reduced() {
    for (const BufferId buffer : std::exchange(reduced_, {}))
        builder_.free(buffer, builder_.last(Stream::reduce));
}

std::vector<DeepSpeedPartitioned::Piece> DeepSpeedPartitioned::pieces_of_bucket() const {
    if (in_bucket_.front().own == no_buffer) return {{buckets_[filling_], elements_in_bucket_}};
    std::vector<Piece> pieces;
    for (const InBucket& entry : in_bucket_)
        pieces.push_back({entry.own, rank_.model.parameters[entry.parameter].numel});
    return pieces;
}

/// The bucket's pieces are joined in another flat tensor and all-reduced; what the rank owns is copied back.
/// Older versions reduce each piece where it is to its owner, which moves half as much. Returns what last
/// reads gradients that aren't owned. source: allreduce_bucket, allreduce_and_copy_with_multiple_ranks
std::vector<OperationId> DeepSpeedPartitioned::flatten_and_reduce() {
    const DType dtype = rank_.training.reduce_dtype;
    const bool copies = rank_.options.rules.flattens_buckets || dtype != rank_.training.parameter_dtype ||
                        !rank_.options.contiguous_gradients;
    order_streams();
    if (!copies) {
        reduce(pieces_of_bucket().front().buffer);
        return builder_.last(Stream::reduce);
    }
    const BufferId joined =
        builder_.allocate(flat_buffer(rank_, BufferRole::gradient_bucket, Category::communication_buffers,
                                      dtype, elements_in_bucket_),
                          reduction_stream());
    for (const Piece& piece : pieces_of_bucket()) copy_piece(piece.buffer, joined, piece.elements);
    const std::vector<OperationId> taken = builder_.last(Stream::reduce);
    reduce(joined);
    const bool owned_alone = rank_.options.contiguous_gradients && rank_.options.rules.flattens_buckets;
    if (owned_alone)
        copy_piece(joined, pieces_of_bucket().front().buffer, owned_in_bucket());
    else
        for (const Piece& piece : pieces_of_bucket()) copy_piece(joined, piece.buffer, piece.elements);
    builder_.free(joined);
    return owned_alone && owned_in_bucket() == 0 ? taken : builder_.last(Stream::reduce);
}

/// What computes waits for the reductions before this one, whose bucket is filled next, and this one for what
/// has been computed. source: average_tensor
void DeepSpeedPartitioned::order_streams() {
    if (!overlaps()) return;
    for (const OperationId reduced : builder_.last(Stream::reduce)) builder_.hold(Stream::compute, reduced);
    for (const OperationId computed : builder_.last(Stream::compute)) builder_.hold(Stream::reduce, computed);
}

void DeepSpeedPartitioned::reduce(BufferId operand) {
    const bool all = rank_.options.rules.flattens_buckets || !rank_.options.reduce_scatter;
    builder_.on_stream(reduction_stream(),
                       Collective{.kind = all ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter,
                                  .group = GroupKind::shard_group,
                                  .send = {operand},
                                  .receive = {operand, !all},
                                  .dtype = rank_.training.reduce_dtype,
                                  .elements = elements_in_bucket_,
                                  .unit = flat_unit(rank_.model)});
}

void DeepSpeedPartitioned::copy_piece(BufferId from, BufferId to, std::uint64_t elements) {
    if (elements > 0)
        builder_.on_stream(
            reduction_stream(),
            Accumulate{.from = {from}, .to = {to}, .unit = flat_unit(rank_.model), .elements = elements});
}

std::uint64_t DeepSpeedPartitioned::owned_in_bucket() const {
    std::uint64_t elements = 0;
    for (const InBucket& entry : in_bucket_) elements += owned_elements_[entry.parameter];
    return elements;
}

/// grads_in_partition: one tensor for the whole gradients of all overlapping parameters, made at the first,
/// on the stream that has reduced them. source: reduce_ipg_grads, copy_grads_in_partition
void DeepSpeedPartitioned::copy_to_partition(const InBucket& entry) {
    if (offloads_optimizer(rank_)) return send_to_host(entry.parameter);
    if (whole_ == no_buffer)
        whole_ = builder_.allocate(flat_buffer(rank_, BufferRole::gradients, Category::gradients,
                                               rank_.training.parameter_dtype, share_.whole_numel),
                                   reduction_stream());
    builder_.on_stream(reduction_stream(),
                       Accumulate{.from = {entry.own != no_buffer ? entry.own : buckets_[filling_]},
                                  .to = {whole_},
                                  .unit = entry.parameter,
                                  .elements = rank_.model.parameters[entry.parameter].numel});
}

/// Between micro-batches the whole gradient, 16 bit, is brought back, added to and sent again; the last one
/// sends the owned part alone, wide. All on the stream that has reduced it.
/// source: async_accumulate_grad_in_cpu_via_gpu, async_inplace_copy_grad_to_fp32_buffer_from_gpu
void DeepSpeedPartitioned::send_to_host(std::uint32_t p) {
    const Stream stream = reduction_stream();
    const auto copy = [&](CopyPath path, std::uint64_t elements, DType dtype) {
        copy_in_line(builder_, stream,
                     {.path = path,
                      .role = BufferRole::gradients,
                      .owner = p,
                      .bytes = elements * bytes_per_element(dtype),
                      .pinned = rank_.options.offload_optimizer.pin_memory});
    };
    const std::uint64_t numel = rank_.model.parameters[p].numel;
    const DType narrow = rank_.training.parameter_dtype;
    if (rank_.training.gradient_accumulation_steps > 1) {
        copy(CopyPath::to_device, numel, narrow);
        if (!last_) copy(CopyPath::to_host, numel, narrow);
    }
    if (last_) copy(CopyPath::to_host, owned_elements_[p], master_dtype());
}

void DeepSpeedPartitioned::end_backward(bool last) {
    last_ = last;
    if (!reducing_ && last) {
        reduce_tied_copy();
        allocate_buckets();
        for (const PlacedParameter& placed : rank_.group.parameters) give_up_kept(placed.parameter);
    }
    if (!reducing_ && !last) return;  // stage 1: the buckets stay until the boundary
    finish_reduction();
    free_buckets();
}

/// A pipeline sums what stands in param.grad, before anything is reduced: nothing where the gradients are
/// kept in another dtype, which leaves None there. source: deepspeed/runtime/pipe/engine.py,
/// _exec_reduce_tied_grads; stage_1_and_2.py, fill_grad_accum_attribute
void DeepSpeedPartitioned::reduce_tied_copy() {
    if (!rank_.tied_copy || keeps_wide_gradients()) return;
    all_reduce_tied_gradient(builder_, Stream::compute,
                             tied_gradient(rank_, kept_[*rank_.tied_copy], rank_.training.parameter_dtype));
}

/// reduce_gradients: after the last backward, in registration order.
void DeepSpeedPartitioned::give_up_kept(std::uint32_t p) {
    if (kept_[p] == no_buffer) return;
    if (keeps_wide_gradients()) {
        // get_gradient_for_reduction narrows it to the bucket's dtype.
        Buffer narrow = builder_.buffer(kept_[p]);
        narrow.dtype = rank_.training.parameter_dtype;
        const BufferId gradient = builder_.allocate(narrow);
        builder_.free(kept_[p]);
        kept_[p] = gradient;
    }
    add_to_bucket(p, std::exchange(kept_[p], no_buffer));
}

void DeepSpeedPartitioned::finish_reduction() {
    reduce_bucket();
    if (overlaps()) builder_.wait_for_all();  // independent_gradient_partition_epilogue: synchronize
    free_reduced();
    for (const BufferId buffer : std::exchange(left_over_, {})) builder_.free(buffer);
    if (averaged_owned_.empty()) {
        averaged_owned_ = std::exchange(owned_, {});
    } else {
        for (std::size_t i = 0; i < owned_.size(); ++i) {
            builder_.on_stream(
                Stream::compute,
                Accumulate{.from = {owned_[i]}, .to = {averaged_owned_[i]}, .always_add = true});
            builder_.free(owned_[i]);
        }
        owned_.clear();
    }
    if (whole_ == no_buffer) return;
    if (averaged_ == no_buffer && !widens_averaged()) {
        averaged_ = std::exchange(whole_, no_buffer);
        return;
    }
    if (averaged_ == no_buffer) {
        Buffer wide = builder_.buffer(whole_);
        wide.dtype = rank_.training.gradient_dtype;
        averaged_ = builder_.allocate(wide);
    }
    builder_.on_stream(Stream::compute, Accumulate{.from = {whole_}, .to = {averaged_}, .always_add = true});
    builder_.free(std::exchange(whole_, no_buffer));
}

// --- step

/// Overflow and norm are taken a gradient at a time: an fp32 copy with its flags, and an fp64 copy.
void DeepSpeedPartitioned::measure_gradients() {
    const std::uint64_t piece = share_.largest_piece;
    const bool sixteen_bit = bytes_per_element(rank_.training.parameter_dtype) == 2;
    const bool checks = rank_.training.parameter_dtype == DType::fp16 || rank_.options.check_grad_overflow;
    if (sixteen_bit && checks) take_and_give_back(builder_, Category::temporaries, DType::fp32, piece);
    take_and_give_back(builder_, Category::temporaries, DType::fp32, 2 * piece);
}

OperationId DeepSpeedPartitioned::step() {
    return offloads_optimizer(rank_) ? step_on_host() : step_on_device();
}

OperationId DeepSpeedPartitioned::step_on_device() {
    const std::uint64_t partition = rank_.group.partition();
    measure_gradients();
    const DType narrow = widens_averaged() ? rank_.training.gradient_dtype : rank_.training.parameter_dtype;
    BufferId gradients =
        builder_.allocate(flat_buffer(rank_, BufferRole::gradients, Category::gradients, narrow, partition));
    if (master_dtype() != narrow) {
        const BufferId widened = builder_.allocate(
            flat_buffer(rank_, BufferRole::gradients, Category::gradients, master_dtype(), partition));
        builder_.free(gradients);
        gradients = widened;
    }
    if (averaged_ != no_buffer) builder_.free(std::exchange(averaged_, no_buffer));
    for (const BufferId buffer : std::exchange(averaged_owned_, {})) builder_.free(buffer);
    const OperationId position = builder_.next();
    std::vector<Orthogonalised> matrices;
    if (rank_.training.optimizer == Optimizer::muon) matrices = muon_partition(rank_).matrices;
    flat_optimizer_step(rank_, builder_, master_, gradients, states_, partition, matrices);
    builder_.free(gradients);
    gather_partitions(rank_, builder_, parameters_.flat());
    return position;
}

/// The host unscales and clips the gradients, then steps; the partition's new values go to the device wide,
/// and are narrowed there. source: step(), DeepSpeedCPUAdam
OperationId DeepSpeedPartitioned::step_on_host() {
    const OperationId position = builder_.next();
    const std::uint64_t partition = rank_.group.partition(), wide = bytes_per_element(master_dtype());
    TrainingConfig training = rank_.training;
    if (rank_.options.sixteen_bit_optimizer_states) training.optimizer_state_dtype = DType::bf16;
    builder_.wait_for_all();
    const OperationId stepped = builder_.on_stream(
        Stream::host,
        HostStep{.unit = flat_unit(rank_.model),
                 .elements = partition,
                 .bytes = host_step_bytes(training, partition, wide, wide) + 2 * partition * wide});
    builder_.hold(Stream::compute, issue_copy(builder_,
                                              {.path = CopyPath::to_device,
                                               .role = BufferRole::parameters,
                                               .owner = flat_unit(rank_.model),
                                               .bytes = partition * wide,
                                               .pinned = rank_.options.offload_optimizer.pin_memory},
                                              {stepped}));
    gather_partitions(rank_, builder_, parameters_.flat());
    return position;
}

}  // namespace zeroplan
