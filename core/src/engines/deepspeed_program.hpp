#pragma once
#include <optional>

#include "engines/deepspeed_rank.hpp"
#include "engines/megatron_model.hpp"

namespace zeroplan {

/// Where a rank stands in the pipeline, and which blocks of its model it runs.
struct DeepSpeedStagePlace {
    std::uint32_t stage = 0, stages = 1;
    ChunkBlocks blocks;
    std::optional<std::uint32_t> tied_copy{};  ///< StageModel's
    bool megatron = false;                     ///< Megatron-DeepSpeed: its model, checkpoints and masks
    bool pipe_engine = false;                  ///< run by DeepSpeed's PipelineEngine, be it with one stage
    std::uint32_t compute_capability = 0;      ///< 0: no GPU library takes a workspace
};

/// One rank's step under DeepSpeed, and what stays between steps.
StepProgram deepspeed_program(const DeepSpeedRank& rank, const DeepSpeedStagePlace& place);

}  // namespace zeroplan
