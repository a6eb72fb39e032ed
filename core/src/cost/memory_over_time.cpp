#include <algorithm>

#include "zeroplan/memory_timeline.hpp"
#include "zeroplan/trace.hpp"

namespace zeroplan {
namespace {

/// Ends of one iteration's operations, in issue order; `next` is the first of it in the time line.
class IterationEnds {
public:
    IterationEnds(const Section& section, const StepTimeline& timeline, std::size_t& next) {
        ends_.assign(section.operations.size(), 0);
        const TimedOperation& first = timeline.operations[next];
        for (; next < timeline.operations.size(); ++next) {
            const TimedOperation& timed = timeline.operations[next];
            if (timed.section != first.section || timed.iteration != first.iteration) break;
            ends_[timed.operation] = timed.end_s;
        }
    }

    double end(OperationId operation) const { return ends_[operation]; }

private:
    std::vector<double> ends_;
};

bool on_compute_stream(const Operation& operation) {
    return operation.stream == Stream::compute && (std::holds_alternative<Compute>(operation.body) ||
                                                   std::holds_alternative<OptimizerStep>(operation.body) ||
                                                   std::holds_alternative<Accumulate>(operation.body));
}

/// Appends one iteration's samples; `samples` are those of the section, `now` runs along.
void append(const Section& section, const IterationEnds& ends, std::span<const MemorySample> samples,
            double& now, std::vector<MemoryPoint>& points) {
    auto sample = samples.begin();
    for (OperationId id = 0; id < section.operations.size(); ++id) {
        const Operation& operation = section.operations[id];
        if (std::holds_alternative<Free>(operation.body))
            for (const OperationId wait : operation.waits) now = std::max(now, ends.end(wait));
        for (; sample != samples.end() && sample->operation == id; ++sample)
            points.push_back({now, sample->live});
        if (on_compute_stream(operation)) now = std::max(now, ends.end(id));
    }
}

CategoryBytes resident_bytes(const StepProgram& program, const std::vector<BufferId>& resident) {
    CategoryBytes bytes;
    for (const BufferId buffer : resident)
        bytes[program.buffers[buffer].category] += allocated_bytes(program.buffers[buffer]);
    return bytes;
}

}  // namespace

std::vector<MemoryPoint> memory_over_time(const Plan& plan, std::uint32_t rank_group,
                                          const StepTimeline& timeline) {
    const StepProgram& program = plan.programs[plan.rank_groups[rank_group].program];
    const std::vector<BufferId> resident = resident_buffers(program);
    const std::vector<MemorySample> samples = memory_timeline(program, program.step, resident);

    std::vector<MemoryPoint> points{{0, resident_bytes(program, resident)}};
    double now = 0;
    for (std::size_t next = 0; next < timeline.operations.size();) {
        const std::uint32_t number = timeline.operations[next].section;
        const auto in_section = [number](const MemorySample& s) { return s.section == number; };
        const auto first = std::find_if(samples.begin(), samples.end(), in_section);
        const auto last = std::find_if_not(first, samples.end(), in_section);
        const Section& section = program.step[number];
        const IterationEnds ends(section, timeline, next);
        append(section, ends, {first, last}, now, points);
    }
    return points;
}

}  // namespace zeroplan
