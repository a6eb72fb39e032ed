#include "zeroplan/gui/step_memory.hpp"

#include <algorithm>

#include "zeroplan/gui/omitted.hpp"
#include "zeroplan/gui/theme.hpp"
#include "zeroplan/trace.hpp"

namespace zeroplan::gui {

namespace {

const StepProgram& program_of(const Plan& plan, std::uint32_t rank_group) {
    return plan.programs.at(plan.rank_groups.at(rank_group).program);
}

StepMoment moment(double at, std::uint32_t section, OperationId operation, const CategoryBytes& live) {
    return {at, section, operation, false, live, static_cast<double>(live.total().count())};
}

StepMoment start_of_step(const CategoryBytes& live) {
    StepMoment start = moment(0, 0, 0, live);
    start.before_step = true;
    return start;
}

QString plain_name(const Section& section) {
    return spoken(section.name);
}

QString section_name(const Section& section) {
    QString name = plain_name(section);
    if (section.repeat > 1) name += QObject::tr(" × %1").arg(section.repeat);
    return name;
}

// One run through a section, as far as the timeline lists it.
struct Repetition {
    std::uint32_t section = 0;
    std::uint64_t iteration = 0;
    friend bool operator==(const Repetition&, const Repetition&) = default;
};

std::vector<Repetition> repetitions(const StepTimeline& timeline) {
    std::vector<Repetition> all;
    for (const TimedOperation& timed : timeline.operations)
        if (const Repetition now{timed.section, timed.iteration}; all.empty() || !(all.back() == now))
            all.push_back(now);
    return all;
}

}  // namespace

std::size_t StepMemory::moment_at(double x) const {
    const auto after = std::upper_bound(moments.begin(), moments.end(), x,
                                        [](double value, const StepMoment& m) { return value < m.at; });
    return after == moments.begin() ? 0 : static_cast<std::size_t>(after - moments.begin()) - 1;
}

StepMemory memory_by_operation(const Plan& plan, std::uint32_t rank_group, const zeroplan::StepMemory& live) {
    const StepProgram& program = program_of(plan, rank_group);
    StepMemory memory{.axis = StepAxis::operations, .moments = {start_of_step(live.before)}};
    for (std::uint32_t s = 0; s < program.step.size(); ++s) {
        const double begin = memory.end;
        memory.end += static_cast<double>(program.step[s].operations.size());
        memory.sections.push_back({begin, memory.end, section_name(program.step[s])});
        for (const MemorySample& sample : live.sections[s].fullest())
            memory.moments.push_back(moment(begin + sample.operation, s, sample.operation, sample.live));
    }
    return memory;
}

StepMemory memory_by_operation(const Plan& plan, std::uint32_t rank_group) {
    return memory_by_operation(plan, rank_group, step_memory(plan, rank_group));
}

StepMemory memory_by_time(const Plan& plan, std::uint32_t rank_group, const StepTimeline& timeline,
                          const zeroplan::StepMemory& live) {
    const StepProgram& program = program_of(plan, rank_group);
    const std::vector<MemoryPoint> points = memory_over_time(plan, rank_group, timeline, live);
    StepMemory memory{
        .axis = StepAxis::time, .moments = {start_of_step(live.before)}, .end = timeline.step_time_s};
    memory.moments.reserve(points.size());
    std::size_t point = 1;  // the first one is the start
    for (const Repetition& repetition : repetitions(timeline)) {
        const double begin = memory.moments.back().at;
        for (; point < points.size(); ++point) {
            const MemoryPoint& p = points[point];
            if (!(Repetition{p.section, p.iteration} == repetition)) break;
            memory.moments.push_back(moment(p.time_s, p.section, p.operation, p.live));
        }
        if (!memory.sections.empty()) memory.sections.back().end = begin;
        memory.sections.push_back(
            {begin, timeline.step_time_s, plain_name(program.step[repetition.section])});
    }
    for (const Omitted& gap : omitted_iterations(timeline))
        memory.omitted.push_back(
            {gap.begin_s, gap.end_s,
             QObject::tr("%1 more × %2").arg(gap.iterations).arg(plain_name(program.step[gap.section]))});
    return memory;
}

StepMemory memory_by_time(const Plan& plan, std::uint32_t rank_group, const StepTimeline& timeline) {
    return memory_by_time(plan, rank_group, timeline, step_memory(plan, rank_group));
}

Description describe_moment(const Plan& plan, std::uint32_t rank_group, const StepMemory& memory,
                            const StepMoment& at, bool dark) {
    const StepProgram& program = program_of(plan, rank_group);
    Description said;
    said.heading = QObject::tr("between two steps");
    if (!at.before_step) {
        const Section& section = program.step.at(at.section);
        const std::uint32_t index = plan.rank_groups.at(rank_group).program;
        said.heading = text(describe(section.operations.at(at.operation), program, model_of(plan, index),
                                     layout_of(plan, index)));
        said.rows.push_back({QObject::tr("operation"),
                             QObject::tr("%1 of %2, %3")
                                 .arg(text(format_count(at.operation + 1U)),
                                      text(format_count(section.operations.size())), section_name(section)),
                             {}});
    }
    if (memory.axis == StepAxis::time)
        said.rows.push_back({QObject::tr("time"), text(format_seconds(at.at)), {}});
    said.rows.push_back({QObject::tr("allocated"), exact(at.live.total()), {}});
    for (auto c = all_categories.rbegin(); c != all_categories.rend(); ++c)
        if (at.live[*c] > Bytes{})
            said.rows.push_back({label(*c), exact(at.live[*c]), category_colour(*c, dark)});
    return said;
}

}  // namespace zeroplan::gui
