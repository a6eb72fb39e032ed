#include "zeroplan/timed_program.hpp"

#include "cost/check_time.hpp"
#include "cost/section_lowering.hpp"
#include "cost/step_costs.hpp"

namespace zeroplan {
namespace {

WorkTime time_of(const OperationBody& body, StepCosts& costs) {
    const auto of = [&costs](const auto& work) {
        if constexpr (requires { costs.time(work); })
            return costs.time(work);
        else
            return WorkTime{};
    };
    return std::visit(of, body);
}

/// Work on streams: what the host does itself isn't scaled, and collectives are by whoever runs them.
void rescale(TimedSection& timed, const Section& section, StepCosts& costs) {
    for (const TimedItem& item : timed.items)
        if (timed.nodes[item.node].collective == no_collective) timed.nodes[item.node].set_work({});
    for (TimedItem& item : timed.items) {
        TimedNode& node = timed.nodes[item.node];
        if (node.collective != no_collective) continue;
        item.begin_s = node.seconds;
        WorkTime work = node.work();
        node.set_work(work += time_of(section.operations[item.operation].body, costs));
        item.end_s = node.seconds;
    }
}

}  // namespace

TimedProgram time_program(const Plan& plan, std::uint32_t program, const WorkScale& scale) {
    check_time_is_modelled(plan.scenario.training);
    const StepProgram& steps = plan.programs[program];
    StepCosts costs(plan, program, scale);
    TimedProgram result;
    result.sections.reserve(steps.step.size());
    for (const Section& section : steps.step) result.sections.push_back(lower(section, costs));
    result.collectives = costs.take_collectives();
    result.gpu = gpu_capacity(plan.scenario.cluster);
    return result;
}

std::vector<TimedProgram> time_programs(const Plan& plan) {
    std::vector<TimedProgram> programs;
    programs.reserve(plan.programs.size());
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) programs.push_back(time_program(plan, p));
    return programs;
}

TimedProgram at_scale(TimedProgram timed, const Plan& plan, std::uint32_t program, const WorkScale& scale) {
    if (scale == WorkScale{}) return timed;
    StepCosts costs(plan, program, scale);
    for (std::size_t s = 0; s < timed.sections.size(); ++s)
        rescale(timed.sections[s], plan.programs[program].step[s], costs);
    return timed;
}

}  // namespace zeroplan
