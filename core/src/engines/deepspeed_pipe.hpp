#pragma once
#include <memory>
#include <vector>

#include "engines/activation_walk.hpp"
#include "engines/deepspeed_program.hpp"
#include "engines/stage_messages.hpp"

namespace zeroplan {

/// A micro-batch of one pipeline stage between its forward and its backward.
struct DeepSpeedFlight {
    std::unique_ptr<ActivationWalk> walk;
    BufferId input = no_buffer, received = no_buffer;  ///< what the walk reads, and what it was cloned from
    BufferId output = no_buffer;                       ///< whole, or this rank's part of it
    BufferId mask = no_buffer;
};

/// Tensors between stages, as DeepSpeed's PipelineEngine holds them. Under tensor parallelism a stage sends a
/// 1 / t part from every rank and keeps only that part of its output; the whole is gathered before it is
/// used. source: deepspeed/runtime/pipe/engine.py, _exec_forward_pass, _exec_backward_pass, _exec_send_grads
/// (pipe_partitioned and grad_partitioned, both true by default)
class DeepSpeedPipe {
public:
    DeepSpeedPipe(const DeepSpeedRank& rank, const DeepSpeedStagePlace& place, ProgramBuilder& builder)
        : rank_(rank), place_(place), builder_(builder) {}

    bool is_first() const { return place_.stage == 0; }
    bool is_last() const { return place_.stage + 1 == place_.stages; }

    /// pipe_recv_buf and grad_layer, which stay.
    void allocate_receive_buffers();
    void receive(DeepSpeedFlight& flight);
    /// The last stage's outputs, fp32 logits, stay in their pipe buffer until a later micro-batch takes it:
    /// two are there, as the loss works on the output in place. Call after a forward and after a backward.
    void overwrite_oldest_logits();
    void keep_logits();
    void keep_output(DeepSpeedFlight& flight);
    /// The gradient of the output, whole; the output itself is whole again, too.
    BufferId receive_gradient(DeepSpeedFlight& flight);
    /// Sends the input's gradient and gives up everything of the micro-batch.
    void finish(DeepSpeedFlight& flight, BufferId output_gradient);

private:
    bool is_partitioned() const { return rank_.training.tensor_parallel > 1; }
    Buffer tensor(std::uint32_t block, std::uint32_t index, BufferRole role) const;
    Buffer input() const;
    Buffer output(BufferRole role) const;
    Buffer part(Buffer whole) const;
    Buffer logits() const;
    /// Of this rank's part of a tensor that passes between two stages; `lower`: the one nearer to the input.
    StageMessage message(const Buffer& whole, std::uint32_t lower, bool gradients) const;
    void make_whole(const Buffer& whole);
    void free_if_there(BufferId& buffer);

    const DeepSpeedRank& rank_;
    const DeepSpeedStagePlace& place_;
    ProgramBuilder& builder_;
    std::vector<BufferId> kept_logits_;
};

}  // namespace zeroplan
