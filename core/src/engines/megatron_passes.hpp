#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engines/activation_walk.hpp"
#include "engines/megatron_gradients.hpp"
#include "engines/megatron_stage.hpp"
#include "engines/program_builder.hpp"

namespace zeroplan {

/// A received activation and the gradient that goes back for it.
struct StageInput {
    BufferId value = no_buffer, gradient = no_buffer;
};
inline void free_if_there(ProgramBuilder& builder, StageInput& input) {
    builder.free_if_there(input.value);
    builder.free_if_there(input.gradient);
}

/// One micro-batch between its forward and its backward in one chunk.
struct InFlight {
    std::unique_ptr<ActivationWalk> walk;
    StageInput input;
    BufferId output = no_buffer;  ///< kept until backward by Megatron-LM 2021
    BufferId mask = no_buffer;    ///< attention mask, where it is kept for backward
};

/// What an engine does around the blocks that a micro-batch runs through; each may be absent.
struct BlockHooks {
    std::function<void(std::uint32_t block)> before_forward{}, after_forward{}, before_backward{};
    /// `last`: the chunk's last backward of the step.
    std::function<void(std::uint32_t block, bool last)> after_backward{};
    std::function<void(Chunk chunk)> after_chunk_backward{};
    /// Right before an operator of `phase`, once its block has been prepared.
    std::function<void(ComputePhase phase, std::uint32_t block)> before_operator{};
    /// What the next operator has to wait for besides.
    std::function<std::vector<OperationId>()> waits{};
};

/// Runs one micro-batch through one chunk. source: megatron/core/pipeline_parallel/schedules.py
/// (forward_step, backward_step).
class MegatronPasses {
public:
    MegatronPasses(const MegatronStage& stage, MegatronGradients& gradients, ProgramBuilder& builder,
                   BlockHooks blocks);
    MegatronPasses(const MegatronPasses&) = delete;  // the hooks point here
    MegatronPasses& operator=(const MegatronPasses&) = delete;

    void forward(InFlight& flight, Chunk chunk);
    /// `gradient`: of the output, received; no_buffer where the chunk ends with the loss.
    /// `last`: the chunk's last of the step, which hands out the parameters' gradients.
    void backward(InFlight& flight, Chunk chunk, BufferId gradient, bool last);

private:
    bool makes_mask(Chunk chunk) const;
    bool keeps_mask() const;
    BufferId allocate_mask();
    void backward_block(InFlight& flight, std::uint32_t block, bool last);
    std::unique_ptr<ActivationWalk> take_walk();

    const MegatronStage& stage_;
    MegatronGradients& gradients_;
    ProgramBuilder& builder_;
    BlockHooks blocks_;
    ActivationWalk::Hooks hooks_;
    std::vector<std::unique_ptr<ActivationWalk>> idle_walks_;
};

}  // namespace zeroplan
