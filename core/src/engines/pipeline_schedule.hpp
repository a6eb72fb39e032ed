#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/training_config.hpp"

namespace zeroplan {

/// One forward or backward of one micro-batch through one model chunk of a pipeline stage.
struct PipelineAction {
    bool forward = true;
    std::uint32_t micro_batch = 0, chunk = 0;
    friend bool operator==(const PipelineAction&, const PipelineAction&) = default;
};

struct PipelineShape {
    PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
    std::uint32_t stages = 1, chunks = 1;  ///< chunks: virtual stages of one stage
    std::uint32_t micro_batches = 1;
};

/// What pipeline stage `stage` does in a step, in order. source:
/// megatron/core/pipeline_parallel/schedules.py.
///   1f1b         min(m, p − 1 − i) forwards first, then one forward and one backward in turn
///   gpipe        all forwards, then all backwards, oldest first
///   interleaved  2 (p − 1 − i) + (v − 1) p forwards of chunks first, chunks in turn every p micro-batches
std::vector<PipelineAction> pipeline_schedule(const PipelineShape& shape, std::uint32_t stage);

/// Most micro-batches that are between forward and backward at once in one stage, counted by chunk.
std::uint64_t peak_in_flight(const std::vector<PipelineAction>& actions);

}  // namespace zeroplan
