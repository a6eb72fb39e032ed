#include <algorithm>

#include "cost/constants.hpp"
#include "zeroplan/step_timeline.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan {
namespace {

std::size_t node_runs(const TimedProgram& program) {
    std::size_t runs = 0;
    for (const TimedSection& section : program.sections) runs += section.nodes.size() * section.repeat;
    return runs;
}

std::vector<NodeTimes> execute(const std::vector<TimedProgram>& programs, const DurationScale& scale) {
    std::vector<NodeTimes> times;
    for (const TimedProgram& program : programs) times.push_back(closed_form_times(program, scale));
    return times;
}

double step_time(const std::vector<TimedProgram>& programs, const DurationScale& scale) {
    const auto scaled = [&scale](const std::vector<TimedProgram>& p) { return execute(p, scale); };
    return time_steps(programs, scaled).front().step_time_s;
}

}  // namespace

NodeTimes closed_form_times(const TimedProgram& program, const DurationScale& scale) {
    NodeTimes times;
    times.reserve(node_runs(program));
    std::array<double, lane_count> lane_end{};
    for (const TimedSection& section : program.sections) {
        for (std::uint64_t iteration = 0; iteration < section.repeat; ++iteration) {
            const std::size_t first = times.size();
            const double host_start = lane_end[host_lane];
            for (const TimedNode& node : section.nodes) {
                double start = lane_end[node.lane];
                for (const std::uint32_t wait : node.after) {
                    if (wait == no_node) continue;
                    start = std::max(start, wait == host_at_start ? host_start : times[first + wait].end_s);
                }
                const double factor = node.collective == no_collective ? scale.compute : scale.communication;
                lane_end[node.lane] = start + node.seconds * factor;
                times.push_back({start, lane_end[node.lane]});
            }
        }
    }
    return times;
}

StepTimeline closed_form_step(const Plan& plan, std::uint32_t rank_group) {
    const cost::Constants& c = cost::constants();
    const std::vector<TimedProgram> programs{time_program(plan, plan.rank_groups[rank_group].program)};
    const auto exact = [](const std::vector<TimedProgram>& p) { return execute(p, {}); };
    StepTimeline timeline = std::move(time_steps(programs, exact).front());
    timeline.low_s = step_time(programs, {c.low_compute.value, c.low_communication.value});
    timeline.high_s = step_time(programs, {c.high_compute.value, c.high_communication.value});
    timeline.fidelity = "closed form";
    return timeline;
}

}  // namespace zeroplan
