#include "account.hpp"

#include <algorithm>
#include <array>

#include "zeroplan/allocator.hpp"
#include "zeroplan/caching_allocator.hpp"

namespace zeroplan {
namespace {

std::span<const Section> one(const Section& section) {
    return {&section, 1};
}

/// Peaks of the stages load, init, first step, steady step, save.
struct Stages {
    std::array<MemoryPeak, 5> peaks;
    std::array<Bytes, 5> reserved;
};

Stages in_arena(const StepProgram& program) {
    const auto loaded = live_after(one(program.load), {});
    const auto resident = live_after(one(program.init), loaded);
    const std::array<std::span<const Section>, 4> stages{one(program.load), one(program.init), program.step,
                                                         one(program.save)};
    const std::vector<Bytes> reserved = arena_reserved(program, stages);
    const MemoryPeak step = memory_peak(program, program.step, resident);
    return {{memory_peak(program, one(program.load), {}), memory_peak(program, one(program.init), loaded),
             step, step, memory_peak(program, one(program.save), resident)},
            {reserved[0], reserved[1], reserved[2], reserved[2], reserved[3]}};
}

std::array<std::span<const Section>, 5> all_stages(const StepProgram& program) {
    return {one(program.load), one(program.init), first_step(program), program.step, one(program.save)};
}

Stages in_caching_allocator(const StepProgram& program, const CachingAllocatorOptions& options) {
    const std::vector<CachingPeak> found = caching_allocator_peaks(program, all_stages(program), options);
    Stages result;
    for (std::size_t i = 0; i < found.size(); ++i) {
        result.peaks[i] = found[i].peak;
        result.reserved[i] = found[i].reserved;
    }
    return result;
}

}  // namespace

std::span<const Section> first_step(const StepProgram& program) {
    return program.first_step.empty() ? program.step : program.first_step;
}

RankGroup account(const StepProgram& program, std::uint32_t index, std::vector<RankRange> ranks,
                  AllocatorKind allocator, const CachingAllocatorOptions& options,
                  const RuntimeMemory& runtime) {
    Stages stages =
        allocator == AllocatorKind::arena ? in_arena(program) : in_caching_allocator(program, options);
    RankGroup group{.ranks = std::move(ranks), .program = index};
    for (std::size_t i = 0; i < stages.peaks.size(); ++i)
        group.phases.push_back({static_cast<Phase>(i), stages.peaks[i].allocated, stages.reserved[i], Bytes{},
                                stages.peaks[i].section, stages.peaks[i].operation});
    constexpr auto steady = static_cast<std::size_t>(Phase::steady_step);
    group.steady = std::move(stages.peaks[steady]);
    group.peak_active = group.steady.allocated;
    group.peak_reserved = stages.reserved[steady];
    group.peak_device = group.peak_reserved + runtime.expected;
    group.resident = memory_peak(program, {}, resident_buffers(program)).allocated;
    group.runtime = runtime.expected;
    group.runtime_low = runtime.low;
    group.runtime_high = runtime.high;
    return group;
}

Bytes reserved_within(const StepProgram& program, Bytes room, const CachingAllocatorOptions& options) {
    const auto stages = all_stages(program);
    const std::span trained(stages.data(), stages.size() - 1);  // all but save
    return caching_allocator_peaks(program, trained, options, room.count()).back().reserved;
}

void account_host(RankGroup& group, const HostPhases& of_one_rank, const ClusterSpec& cluster) {
    const std::uint64_t processes = std::min(cluster.gpus_per_node, cluster.gpus_used);
    for (PhaseMemory& phase : group.phases)
        phase.host_per_node = processes * of_one_rank[static_cast<std::size_t>(phase.phase)].total();
}

}  // namespace zeroplan
