#pragma once
#include <deque>
#include <vector>

#include "engines/megatron_fsdp_pool.hpp"
#include "engines/megatron_fsdp_state.hpp"

namespace zeroplan {

/// Reduces one chunk's gradients bucket by bucket once backward has left them.
/// source: param_and_grad_buffer.py (GradReducePipeline), megatron_fsdp.py
/// (_process_post_backward_gradients, _root_post_backward).
class MegatronFsdpReductions {
public:
    MegatronFsdpReductions(MegatronFsdpState& state, FsdpChunk& chunk, ProgramBuilder& builder)
        : state_(state), chunk_(chunk), builder_(builder), ready_(chunk.size(), 0) {}

    /// fsdp_double_buffer: the buffers that stay for the whole run.
    void allocate_resident();
    /// Where operators leave the gradients of a bucket: the buffer that stays, or one made for the reduction.
    BufferId place_of(FsdpBuffers& bucket);
    /// Backward has left the gradients of `block`. `last`: of the step; stages 0 and 1 reduce then only.
    void after_backward(std::uint32_t block, bool last);
    /// Waits for every reduction once a chunk's backward has ended.
    void finish();
    /// Without overlap_grad_reduce: every bucket before the optimizer's step.
    void reduce_everything();
    /// Reductions out of buffers that were given back to the pool: the next operator may write there.
    std::vector<OperationId> take_waits();

private:
    struct Queued {
        std::size_t bucket;
        std::vector<OperationId> reduced;
    };

    void reduce(std::size_t index, bool last);
    void scatter(FsdpBuffers& bucket);
    void reduce_whole(FsdpBuffers& bucket);
    void all_reduce_over_replicas(const FsdpBuffers& bucket);
    void free_oldest();
    void make_room();
    void keep_two_units(const FsdpBuffers& coming);

    MegatronFsdpState& state_;
    FsdpChunk& chunk_;
    ProgramBuilder& builder_;
    FsdpPool pool_;
    std::vector<std::size_t> ready_;  ///< by bucket: parameters whose gradients are there
    std::deque<Queued> queue_;
    std::vector<OperationId> given_back_;
    std::uint32_t given_back_in_ = 0;  ///< section
};

}  // namespace zeroplan
