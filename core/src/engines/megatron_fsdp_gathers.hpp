#pragma once
#include <set>
#include <vector>

#include "engines/megatron_fsdp_pool.hpp"
#include "engines/megatron_fsdp_state.hpp"

namespace zeroplan {

/// Gathers one chunk's parameters bucket by bucket before they are read, some buckets ahead.
/// source: param_and_grad_buffer.py (AllGatherPipeline), megatron_fsdp.py (_pre_forward_param_unshard,
/// _pre_backward_param_unshard, _post_forward).
class MegatronFsdpGathers {
public:
    enum class Direction : std::uint8_t { forward, backward };

    MegatronFsdpGathers(MegatronFsdpState& state, FsdpChunk& chunk, ProgramBuilder& builder)
        : state_(state), chunk_(chunk), builder_(builder), gathered_(chunk.size()) {}

    /// fsdp_double_buffer: the buffers that stay for the whole run.
    void allocate_resident();
    /// The optimizer has updated the parameters: all are gathered anew.
    void begin_step();
    /// Gathers what `block` reads, and what stands behind it in `direction` as far as the window reaches.
    void gather(std::uint32_t block, Direction direction) { gather_all(read_by(block), direction, true); }
    /// Gathers what `block` reads and nothing ahead, as a recomputed forward does.
    void gather_alone(std::uint32_t block) { gather_all(read_by(block), Direction::forward, false); }
    /// What is gathered for nobody may go: the output layer's hook gathers ahead in forward's order, too, and
    /// leaves the first layers behind.
    void begin_backward();
    /// Without overlap_param_gather: every bucket, once the optimizer has stepped.
    void gather_everything();
    /// A unit's parameters go right after its forward or backward.
    void release(std::uint32_t block);
    /// Gathers that the next operator has to wait for.
    std::vector<OperationId> take_waits();

private:
    using Buckets = std::set<std::size_t>;  ///< indices into the chunk
    struct Gathered {
        bool done = false;
        OperationId operation = 0;
        std::uint32_t section = 0;
    };

    Buckets read_by(std::uint32_t block) const;
    void gather_all(const Buckets& read, Direction direction, bool ahead);
    Buckets with_window(Buckets buckets, Direction direction) const;
    void gather_bucket(std::size_t index);
    void make_room(FsdpBuffers& bucket);
    void release_bucket(std::size_t index);
    void recycle();

    MegatronFsdpState& state_;
    FsdpChunk& chunk_;
    ProgramBuilder& builder_;
    FsdpPool pool_;
    std::vector<Gathered> gathered_;  ///< by bucket
    Buckets awaited_;
    Buckets releasable_;  ///< gathered, to go once another gather needs room
};

}  // namespace zeroplan
