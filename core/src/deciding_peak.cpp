#include "deciding_peak.hpp"

#include <algorithm>

#include "live_until.hpp"

namespace zeroplan {
namespace {

std::span<const Section> one(const Section& section) {
    return {&section, 1};
}

/// Buffers live when a phase begins.
std::vector<BufferId> live_before(const StepProgram& program, Phase phase) {
    switch (phase) {
        case Phase::load:
            return {};
        case Phase::init:
            return live_after(one(program.load), {});
        case Phase::first_step:
            return live_after(one(program.init), live_after(one(program.load), {}));
        case Phase::steady_step:
        case Phase::save:
            break;
    }
    return resident_buffers(program);
}

const PhaseMemory& judged_phase(const Plan& plan) {
    const std::vector<PhaseMemory>& phases = plan.rank_groups[plan.memory.worst_group].phases;
    return *std::find_if(phases.begin(), phases.end(),
                         [&](const PhaseMemory& phase) { return phase.phase == plan.memory.peak_phase; });
}

}  // namespace

std::span<const Section> sections_of(const StepProgram& program, Phase phase) {
    switch (phase) {
        case Phase::load:
            return one(program.load);
        case Phase::init:
            return one(program.init);
        case Phase::first_step:
            return program.first_step.empty() ? program.step : program.first_step;
        case Phase::steady_step:
            return program.step;
        case Phase::save:
            break;
    }
    return one(program.save);
}

std::vector<BufferId> live_at(const StepProgram& program, const Moment& moment) {
    return live_until(sections_of(program, moment.phase), moment.section, moment.operation,
                      live_before(program, moment.phase));
}

CategoryBytes bytes_of(const StepProgram& program, std::span<const BufferId> live) {
    CategoryBytes bytes;
    for (const BufferId id : live)
        bytes[program.buffers[id].category] += allocated_bytes(program.buffers[id]);
    return bytes;
}

DecidingPeak deciding_peak(const Plan& plan) {
    const RankGroup& group = plan.rank_groups[plan.memory.worst_group];
    const StepProgram& program = plan.programs[group.program];
    const PhaseMemory& phase = judged_phase(plan);
    DecidingPeak peak{.group = plan.memory.worst_group,
                      .moment = {phase.phase, phase.section, phase.operation},
                      .reserved = phase.peak_reserved};
    if (phase.phase == Phase::steady_step) {
        peak.live = group.steady.live;
        return peak;
    }
    // A phase that frees before it allocates has its peak where it begins.
    peak.live = live_at(program, peak.moment);
    const auto total = [&](const std::vector<BufferId>& live) { return bytes_of(program, live).total(); };
    std::vector<BufferId> before = live_before(program, phase.phase);
    if (total(before) >= total(peak.live)) peak.live = std::move(before);
    return peak;
}

PeakIngredients peak_ingredients(const Plan& plan) {
    const DecidingPeak peak = deciding_peak(plan);
    const RankGroup& group = plan.rank_groups[peak.group];
    PeakIngredients found{.categories = bytes_of(plan.programs[group.program], peak.live),
                          .runtime = group.runtime};
    found.holes = peak.reserved - std::min(peak.reserved, found.categories.total());
    return found;
}

}  // namespace zeroplan
