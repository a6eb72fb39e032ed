#include "zeroplan/step_memory.hpp"

#include <algorithm>

#include "account.hpp"
#include "caching_replay.hpp"

namespace zeroplan {
namespace {

CategoryBytes resident_bytes(const StepProgram& program, const std::vector<BufferId>& resident) {
    CategoryBytes bytes;
    for (const BufferId buffer : resident)
        bytes[program.buffers[buffer].category] += allocated_bytes(program.buffers[buffer]);
    return bytes;
}

StepMemory in_arena(const StepProgram& program) {
    const std::vector<BufferId> resident = resident_buffers(program);
    StepMemory memory{.before = resident_bytes(program, resident), .sections = {}};
    for (std::size_t i = 0; i < program.step.size(); ++i)
        memory.sections.push_back({std::vector<std::vector<MemorySample>>(1)});
    for (const MemorySample& sample : memory_timeline(program, program.step, resident))
        memory.sections[sample.section].runs.front().push_back(sample);
    return memory;
}

StepMemory in_caching_allocator(const StepProgram& program, const CachingAllocatorOptions& options) {
    CachingReplay replay(program, options);
    const auto ignore = [](std::uint32_t, std::uint64_t, OperationId) {};
    replay.play({&program.load, 1}, ignore);
    replay.play({&program.init, 1}, ignore);
    replay.play(first_step(program), ignore);

    StepMemory memory{.before = replay.bytes(), .sections = {}};
    for (const Section& section : program.step)
        memory.sections.push_back(
            {std::vector<std::vector<MemorySample>>(std::min(section.repeat, CachingReplay::most_runs))});
    replay.play(program.step, [&](std::uint32_t section, std::uint64_t run, OperationId operation) {
        memory.sections[section].runs[run].push_back({section, operation, replay.bytes()});
    });
    return memory;
}

Bytes highest(const std::vector<MemorySample>& samples) {
    Bytes high;
    for (const MemorySample& sample : samples) high = std::max(high, sample.live.total());
    return high;
}

}  // namespace

std::span<const MemorySample> SectionMemory::of_iteration(std::uint64_t iteration) const {
    if (runs.empty()) return {};
    return runs[std::min<std::uint64_t>(iteration, runs.size() - 1)];
}

std::span<const MemorySample> SectionMemory::fullest() const {
    std::span<const MemorySample> found;
    Bytes high;
    for (const auto& run : runs) {
        if (highest(run) < high) continue;
        high = highest(run);
        found = run;
    }
    return found;
}

Bytes StepMemory::peak() const {
    Bytes high = before.total();
    for (const SectionMemory& section : sections)
        for (const auto& run : section.runs) high = std::max(high, highest(run));
    return high;
}

StepMemory step_memory(const Plan& plan, std::uint32_t rank_group) {
    const StepProgram& program = plan.programs.at(plan.rank_groups.at(rank_group).program);
    return plan.allocator == AllocatorKind::arena
               ? in_arena(program)
               : in_caching_allocator(program, plan.scenario.training.allocator);
}

}  // namespace zeroplan
