#include "caching_replay.hpp"
#include "live_until.hpp"

namespace zeroplan {
namespace {

CachingPeak play_stage(CachingReplay& replay, std::span<const Section> stage) {
    const Bytes at_start = replay.allocated();
    const std::vector<BufferId> before = replay.live();
    CachingPeak result{.peak = {.allocated = at_start, .at_peak = replay.bytes(), .live = before}};
    MemoryPeak& peak = result.peak;
    replay.play(stage, [&](std::uint32_t section, std::uint64_t, OperationId operation) {
        if (replay.allocated() <= peak.allocated) return;
        peak.allocated = replay.allocated();
        peak.at_peak = replay.bytes();
        peak.section = section;
        peak.operation = operation;
    });
    if (peak.allocated > at_start) peak.live = live_until(stage, peak.section, peak.operation, before);
    result.reserved = replay.peak_reserved();
    return result;
}

}  // namespace

std::vector<CachingPeak> caching_allocator_peaks(const StepProgram& program,
                                                 std::span<const std::span<const Section>> stages,
                                                 const CachingAllocatorOptions& options,
                                                 std::uint64_t capacity) {
    CachingReplay replay(program, options, capacity);
    std::vector<CachingPeak> peaks;
    for (const std::span<const Section> stage : stages) peaks.push_back(play_stage(replay, stage));
    return peaks;
}

}  // namespace zeroplan
