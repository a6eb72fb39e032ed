#pragma once
#include <cstdint>
#include <string>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// A plan's allocations of one rank group as a PyTorch memory snapshot: the pickle that
/// torch.cuda.memory._dump_snapshot writes and pytorch.org/memory_viz opens. From an empty device: load,
/// set-up, first step, one steady step (of repeated micro-batches, two). Addresses and segments are those of
/// the plan's allocator; the frames of an allocation name its tensor and the operation that it serves.
///
/// source: torch/cuda/_memory_viz.py and torch/utils/viz/MemoryViz.js: device_traces with alloc,
/// free_requested, free_completed and segment_alloc, and segments tiled with blocks.
std::string memory_snapshot(const Plan& plan, std::uint32_t rank_group);

}  // namespace zeroplan
