#pragma once
#include "engines/deepspeed_rank.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Stages 1 and 2: of the partition's master weights and of their gradients, wherever they are.
DType partitioned_master_dtype(const DeepSpeedRank& rank);

/// Stages 1 and 2 (DeepSpeedZeroOptimizer): the flat group's partitions, gradients that pass through IPG
/// buckets, and the whole gradients of every parameter that the own partition overlaps. source:
/// deepspeed/runtime/zero/stage_1_and_2.py
class DeepSpeedPartitioned {
public:
    DeepSpeedPartitioned(const DeepSpeedRank& rank, ProgramBuilder& builder);

    void load() { parameters_.load(); }
    void init();
    BufferId values(std::uint32_t parameter) const { return parameters_.values(parameter); }
    void begin_backward(bool last);
    void gradient_ready(std::uint32_t parameter, BufferId gradient);
    void end_backward(bool last);
    OperationId step();
    const std::vector<BufferId>& states_of_first_step() const { return lazy_states_; }

private:
    struct InBucket {
        std::uint32_t parameter = 0;
        BufferId own = no_buffer;  ///< its gradient where it was not copied into the bucket
    };
    /// A tensor that is reduced, or the bucket as far as it is filled.
    struct Piece {
        BufferId buffer = no_buffer;
        std::uint64_t elements = 0;
    };

    DType master_dtype() const { return partitioned_master_dtype(rank_); }
    bool is_stage_2() const { return rank_.training.zero_stage == 2; }
    /// Gradients are reduced as they come: in every backward at stage 2, in the last one at stage 1 with
    /// overlap_comm.
    bool reduces_in_backward(bool last) const {
        return is_stage_2() ? !rank_.pipelined : rank_.options.overlap_comm && last;
    }
    /// Stage 1 keeps accumulated gradients of all parameters in another dtype (param.grad_accum).
    bool keeps_wide_gradients() const {
        return !is_stage_2() && rank_.training.gradient_dtype != rank_.training.parameter_dtype;
    }
    /// Stage 2 reduces in the parameters' dtype and sums what it keeps in the other.
    bool widens_averaged() const {
        return is_stage_2() && !offloads_optimizer(rank_) &&
               bytes_per_element(rank_.training.gradient_dtype) >
                   bytes_per_element(rank_.training.parameter_dtype);
    }
    bool overlaps() const { return rank_.options.overlap_comm; }
    /// Of all that happens to a bucket.
    Stream reduction_stream() const { return overlaps() ? Stream::reduce : Stream::compute; }
    void allocate_buckets();
    void free_buckets();
    void keep(std::uint32_t parameter, BufferId gradient);
    void add_to_bucket(std::uint32_t parameter, BufferId gradient);
    void reduce_bucket();
    std::vector<Piece> pieces_of_bucket() const;
    std::uint64_t owned_in_bucket() const;
    std::vector<OperationId> flatten_and_reduce();
    void order_streams();
    void reduce(BufferId operand);
    void copy_piece(BufferId from, BufferId to, std::uint64_t elements);
    void give_up_own(const InBucket& entry, const std::vector<OperationId>& taken);
    void free_reduced();
    void copy_to_partition(const InBucket& entry);
    void send_to_host(std::uint32_t parameter);
    void reduce_tied_copy();
    void give_up_kept(std::uint32_t parameter);
    void finish_reduction();
    void measure_gradients();
    OperationId step_on_device();
    OperationId step_on_host();

    const DeepSpeedRank& rank_;
    ProgramBuilder& builder_;
    DeepSpeedParameters parameters_;
    PartitionShare share_;
    std::vector<bool> overlaps_;                 ///< by parameter: the own partition
    std::vector<std::uint64_t> owned_elements_;  ///< by parameter, in the own partition
    BufferId master_ = no_buffer;
    std::vector<BufferId> states_, lazy_states_;
    std::vector<BufferId> buckets_;  ///< one, or two with overlap_comm
    std::size_t filling_ = 0;        ///< the bucket that gradients go to
    std::uint64_t elements_in_bucket_ = 0;
    std::vector<InBucket> in_bucket_;
    std::vector<BufferId> kept_;     ///< by parameter: stage 1, until the last backward
    BufferId whole_ = no_buffer;     ///< this backward's gradients in partition
    BufferId averaged_ = no_buffer;  ///< those that earlier backwards have left
    std::vector<BufferId> owned_,
        averaged_owned_;               ///< the same where gradients stay where autograd left them
    std::vector<BufferId> left_over_;  ///< stage 1: freed when the reduction has ended
    std::vector<BufferId> reduced_;    ///< that the last reduction may still use
    bool reducing_ = false, last_ = false;
};

}  // namespace zeroplan
