#pragma once
#include "zeroplan/plan.hpp"
#include "zeroplan/runtime_memory.hpp"

namespace zeroplan {

/// The first step's sections: a steady step's where the program has none of its own.
std::span<const Section> first_step(const StepProgram& program);

/// Memory of one program in every phase, by the engine's allocator.
RankGroup account(const StepProgram& program, std::uint32_t index, std::vector<RankRange> ranks,
                  AllocatorKind allocator, const RuntimeMemory& runtime);

/// Adds what the processes of one node take of its memory, all of them as much as the group's ranks.
void account_host(RankGroup& group, const HostPhases& of_one_rank, const ClusterSpec& cluster);

}  // namespace zeroplan
