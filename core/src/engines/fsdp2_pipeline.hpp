#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engines/fsdp2_blocks.hpp"
#include "engines/pipeline_schedule.hpp"
#include "engines/torch_parallel.hpp"

namespace zeroplan {

/// The micro-batches of one pipeline stage. source: torch/distributed/pipelining/stage.py (PyTorch 2.6)
class Fsdp2Pipeline {
public:
    /// `number`: the stage's.
    Fsdp2Pipeline(const TorchStage& stage, std::uint64_t number, const Fsdp2Rank& rank,
                  ProgramBuilder& builder, Fsdp2Parameters& parameters, Fsdp2Gradients& gradients,
                  Fsdp2Blocks& blocks)
        : stage_(stage),
          number_(number),
          rank_(rank),
          builder_(builder),
          parameters_(parameters),
          gradients_(gradients),
          blocks_(blocks) {}

    /// Buffers to receive into are made once for every micro-batch, and stay.
    void allocate_received();
    /// Every forward and backward of a step, in the schedule's order. `workspace`: cuBLAS's.
    void run(BufferId workspace);
    /// A stage keeps the outputs of all micro-batches until the step has ended.
    void free_outputs();

private:
    struct Received {
        BufferId input = no_buffer, gradient = no_buffer;
    };

    const ModelSpec& model() const { return rank_.model(); }
    std::uint32_t output_of(std::uint32_t block) const {
        return model().block_kinds[model().blocks[block].kind].output;
    }
    bool embeds(const PipelineAction& action) const { return stage_.parts[action.chunk].embedding; }
    std::uint64_t virtual_stage(const PipelineAction& action) const {
        return action.chunk * rank_.training().pipeline_parallel + number_;
    }
    Buffer tensor_of(BufferRole role, std::uint32_t block, std::uint32_t tensor) const;
    void transfer(bool send, bool gradients, std::uint64_t lower, std::uint32_t block, std::uint32_t tensor);
    void transfer_before(const PipelineAction& action, bool send);
    void transfer_behind(const PipelineAction& action, bool send);
    void forward(ActivationWalk& walk, const PipelineAction& action);
    void keep_output(const ActivationWalk& walk, std::uint32_t last);
    void keep_logits(std::uint32_t head);
    void backward(ActivationWalk& walk, const PipelineAction& action);

    const TorchStage& stage_;
    std::uint64_t number_;
    const Fsdp2Rank& rank_;
    ProgramBuilder& builder_;
    Fsdp2Parameters& parameters_;
    Fsdp2Gradients& gradients_;
    Fsdp2Blocks& blocks_;
    std::vector<std::vector<Received>> received_;  ///< by chunk and micro-batch
    std::vector<BufferId> outputs_;
};

}  // namespace zeroplan
