#include <algorithm>

#include "zeroplan/step_memory.hpp"
#include "zeroplan/trace.hpp"

namespace zeroplan {
namespace {

/// One iteration of a section in a timeline: when its operations end, by their position in the section.
struct Iteration {
    std::uint32_t section = 0;
    std::uint64_t number = 0;
    std::vector<double> ends;
};

/// The iteration that begins at operation `next` of the timeline; `next` moves behind it.
Iteration read_iteration(const StepProgram& program, const StepTimeline& timeline, std::size_t& next) {
    const TimedOperation& first = timeline.operations[next];
    Iteration iteration{first.section, first.iteration, {}};
    iteration.ends.assign(program.step[first.section].operations.size(), 0);
    for (; next < timeline.operations.size(); ++next) {
        const TimedOperation& timed = timeline.operations[next];
        if (timed.section != first.section || timed.iteration != first.iteration) break;
        iteration.ends[timed.operation] = timed.end_s;
    }
    return iteration;
}

bool on_compute_stream(const Operation& operation) {
    return operation.stream == Stream::compute && (std::holds_alternative<Compute>(operation.body) ||
                                                   std::holds_alternative<OptimizerStep>(operation.body) ||
                                                   std::holds_alternative<Accumulate>(operation.body));
}

/// Appends one iteration's samples; `now` runs along.
void append(const Section& section, const Iteration& iteration, std::span<const MemorySample> samples,
            double& now, std::vector<MemoryPoint>& points) {
    auto sample = samples.begin();
    for (OperationId id = 0; id < section.operations.size(); ++id) {
        const Operation& operation = section.operations[id];
        if (std::holds_alternative<Free>(operation.body))
            for (const OperationId wait : operation.waits) now = std::max(now, iteration.ends[wait]);
        for (; sample != samples.end() && sample->operation == id; ++sample)
            points.push_back({now, sample->live, iteration.section, iteration.number, id});
        if (on_compute_stream(operation)) now = std::max(now, iteration.ends[id]);
    }
}

}  // namespace

std::vector<MemoryPoint> memory_over_time(const Plan& plan, std::uint32_t rank_group,
                                          const StepTimeline& timeline) {
    return memory_over_time(plan, rank_group, timeline, step_memory(plan, rank_group));
}

std::vector<MemoryPoint> memory_over_time(const Plan& plan, std::uint32_t rank_group,
                                          const StepTimeline& timeline, const StepMemory& memory) {
    const StepProgram& program = plan.programs[plan.rank_groups[rank_group].program];
    std::vector<MemoryPoint> points{{0, memory.before, 0, 0, 0}};
    double now = 0;
    for (std::size_t next = 0; next < timeline.operations.size();) {
        const Iteration iteration = read_iteration(program, timeline, next);
        append(program.step[iteration.section], iteration,
               memory.sections[iteration.section].of_iteration(iteration.number), now, points);
    }
    return points;
}

}  // namespace zeroplan
