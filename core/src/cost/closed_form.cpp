#include <algorithm>

#include "cost/constants.hpp"
#include "cost/program_run.hpp"
#include "zeroplan/error.hpp"
#include "zeroplan/step_timeline.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan {
namespace {

/// Whoever ends next goes on, so that messages come in the order of time.
void run_side_by_side(std::vector<ProgramRun>& runs, Meetings& meetings) {
    const auto all_look_up = [&](double now) {
        for (bool further = true; further;) {
            further = false;
            for (ProgramRun& run : runs) further = run.look_up(now, meetings) || further;
        }
    };
    for (ProgramRun& run : runs) run.start(meetings);
    all_look_up(0);
    for (;;) {
        const auto next = std::min_element(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
            return a.next_end_s() < b.next_end_s();
        });
        if (next == runs.end() || next->next_end_s() == ProgramRun::never) return;
        const double now = next->next_end_s();
        if (next->finish_next(meetings)) all_look_up(now);
    }
}

double slowest(const std::vector<StepTimeline>& timelines) {
    double seconds = 0;
    for (const StepTimeline& step : timelines) seconds = std::max(seconds, step.step_time_s);
    return seconds;
}

/// One end of the interval.
double slowest_at(const cost::IntervalEnd& end, const TimedAt& timed) {
    const WorkScale work{end.products.value, end.attention.value, end.memory.value, end.offload.value};
    return slowest(time_steps(timed(work), [&end](const std::vector<TimedProgram>& programs) {
        return closed_form_times(programs, end.communication.value);
    }));
}

}  // namespace

std::vector<NodeTimes> closed_form_times(const std::vector<TimedProgram>& programs,
                                         double communication_scale) {
    std::vector<ProgramRun> runs;
    runs.reserve(programs.size());
    for (const TimedProgram& program : programs) runs.emplace_back(program, communication_scale);
    Meetings meetings = meetings_of(programs);
    if (meetings.empty())
        for (ProgramRun& run : runs) run.alone();
    else
        run_side_by_side(runs, meetings);
    std::vector<NodeTimes> times;
    for (ProgramRun& run : runs) {
        if (!run.done())
            throw Error(ErrorCode::run_failed, "the pipeline stages' programs wait for each other",
                        "this is a mistake of the program, not of the scenario");
        times.push_back(run.take());
    }
    return times;
}

NodeTimes closed_form_times(const TimedProgram& program, double communication_scale) {
    ProgramRun run(program, communication_scale);
    run.alone();
    return run.take();
}

std::vector<StepTimeline> closed_form_steps(const TimedAt& timed) {
    const auto exact = [](const std::vector<TimedProgram>& programs) { return closed_form_times(programs); };
    std::vector<StepTimeline> timelines = time_steps(timed({}), exact);
    const double low = slowest_at(cost::constants({}).low_end, timed);
    const double high = slowest_at(cost::constants({}).high_end, timed);
    const double expected = slowest(timelines);
    for (StepTimeline& step : timelines) {
        const double share = expected > 0 ? step.step_time_s / expected : 0;
        step.low_s = low * share;
        step.high_s = high * share;
        step.fidelity = "closed form";
    }
    return timelines;
}

StepTimeline closed_form_step(const Plan& plan, std::uint32_t rank_group) {
    const std::uint32_t program = plan.rank_groups[rank_group].program;
    if (plan.scenario.training.pipeline_parallel > 1) return std::move(closed_form_steps(plan)[program]);
    const TimedProgram base = time_program(plan, program);
    const TimedAt timed = [&](const WorkScale& scale) {
        return std::vector<TimedProgram>{at_scale(base, plan, program, scale)};
    };
    return std::move(closed_form_steps(timed).front());
}

std::vector<StepTimeline> closed_form_steps(const Plan& plan) {
    const std::vector<TimedProgram> base = time_programs(plan);
    return closed_form_steps([&](const WorkScale& scale) {
        std::vector<TimedProgram> programs;
        for (std::uint32_t p = 0; p < base.size(); ++p) programs.push_back(at_scale(base[p], plan, p, scale));
        return programs;
    });
}

}  // namespace zeroplan
