#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engines/megatron_messages.hpp"
#include "engines/megatron_passes.hpp"

namespace zeroplan {

/// The micro-batches that are between their forward and their backward, and the tensors that the schedule's
/// variables keep longer than they are needed. source: megatron/core/pipeline_parallel/schedules.py.
class MegatronFlights {
public:
    /// What the variables of a 1F1B schedule's loop keep until they are assigned again.
    struct Held {
        StageInput input;
        BufferId output_gradient = no_buffer;
    };

    MegatronFlights(const MegatronStage& stage, MegatronPasses& passes, ProgramBuilder& builder)
        : stage_(stage), passes_(passes), builder_(builder), messages_(stage, builder) {}

    /// Each chunk keeps the input it received last, with its gradient, until it is given the next one.
    void allocate_retained();

    void forward(std::uint32_t micro_batch, Chunk chunk);
    /// `last`: the chunk's last of the step.
    void backward(std::uint32_t micro_batch, Chunk chunk, bool last);
    /// One micro-batch through one chunk that leaves nothing.
    void pass_alone(Chunk chunk);
    /// The gradient of the chunk's next backward arrives before that begins.
    void receive_gradient_ahead(Chunk chunk) {
        received_gradient_ = stage_.allocate_output_gradient(builder_, chunk);
    }

    Held held() const { return held_; }
    /// A repeated section must end with the buffers it began with.
    void restore(const Held& held);
    /// Each chunk is left with its last input, as at the start of the step.
    void end();

private:
    using Pass = std::pair<std::uint32_t, Chunk>;  ///< micro-batch and chunk

    void retain(const Pass& pass);
    bool is_retained(const Pass& pass) const;
    void release_unless_retained(const Pass& pass);
    BufferId take_output_gradient(Chunk chunk);

    const MegatronStage& stage_;
    MegatronPasses& passes_;
    ProgramBuilder& builder_;
    MegatronMessages messages_;
    std::vector<StageInput> retained_, initial_retained_;  ///< by chunk
    std::map<Pass, InFlight> in_flight_;
    std::map<Chunk, std::uint32_t> last_forward_;
    std::optional<Pass> last_forwarded_;
    Held held_;
    BufferId received_gradient_ = no_buffer;
};

}  // namespace zeroplan
