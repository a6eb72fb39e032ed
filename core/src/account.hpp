#pragma once
#include "zeroplan/plan.hpp"
#include "zeroplan/runtime_memory.hpp"

namespace zeroplan {

/// The first step's sections: a steady step's where the program has none of its own.
std::span<const Section> first_step(const StepProgram& program);

/// Memory of one program in every phase, by the engine's allocator; `options` are those of PyTorch's.
RankGroup account(const StepProgram& program, std::uint32_t index, std::vector<RankRange> ranks,
                  AllocatorKind allocator, const CachingAllocatorOptions& options,
                  const RuntimeMemory& runtime);

/// What PyTorch's allocator reserves for the program from load to a steady step where `room` is all there
/// is: free segments are given back before more than that is reserved. More than `room`: it does not fit.
/// source: CUDACachingAllocator.cpp, malloc: alloc_block, else release_cached_blocks and alloc_block.
Bytes reserved_within(const StepProgram& program, Bytes room, const CachingAllocatorOptions& options = {});

/// Adds what the processes of one node take of its memory, all of them as much as the group's ranks.
void account_host(RankGroup& group, const HostPhases& of_one_rank, const ClusterSpec& cluster);

}  // namespace zeroplan
