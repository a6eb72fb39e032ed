#include "zeroplan/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "link_loads.hpp"
#include "simulation.hpp"

namespace zeroplan {
namespace {

using sim::SimulatedStep;
using sim::Simulation;

/// What a what-if changes, one cause after the other.
struct Cause {
    std::string name;
    WhatIf what_if;  ///< this cause and those before it
};

/// One after the other, or all at once where they are too many for a line each.
constexpr std::size_t most_causes_of_a_kind = 4;

template <typename Item>
void add_causes(std::vector<Cause>& causes, WhatIf& so_far, std::vector<Item> WhatIf::*list,
                const std::vector<Item>& items, const char* what) {
    if (items.size() > most_causes_of_a_kind) {
        so_far.*list = items;
        causes.push_back({fmt::format("{} {}", items.size(), what), so_far});
        return;
    }
    for (const Item& item : items) {
        (so_far.*list).push_back(item);
        causes.push_back({describe(item), so_far});
    }
}

std::vector<Cause> causes_of(const WhatIf& asked) {
    std::vector<Cause> causes;
    WhatIf so_far;
    add_causes(causes, so_far, &WhatIf::stragglers, asked.stragglers, "ranks that compute slower");
    add_causes(causes, so_far, &WhatIf::slow_links, asked.slow_links, "links with less bandwidth");
    if (asked.leaf_switches || asked.fabric) {
        so_far.leaf_switches = asked.leaf_switches;
        so_far.fabric = asked.fabric;
        so_far.placement = asked.placement;
        causes.push_back({describe(fabric_of(asked), asked.placement), so_far});
    }
    if (asked.background) {
        so_far.background = asked.background;
        causes.push_back({asked.background->name + " beside it", so_far});
    }
    return causes;
}

StepCause difference(const std::string& cause, const SimulatedStep& before, const SimulatedStep& after) {
    const auto more = [&](double StepTimeline::*figure) { return after.mean(figure) - before.mean(figure); };
    return {.cause = cause,
            .step_time_s = after.step_time_s(),
            .added_s = after.step_time_s() - before.step_time_s(),
            .added_exposed_communication_s = more(&StepTimeline::exposed_communication_s),
            .added_idle_s = more(&StepTimeline::bubble_s)};
}

/// The other job, and how long its step takes where it has the fabric for itself.
NeighbourJob neighbour(const Plan& other, const WhatIf& what_if, std::optional<double> beside_s) {
    WhatIf alone;
    alone.leaf_switches = what_if.leaf_switches;
    alone.fabric = what_if.fabric;
    alone.placement = background_placement(what_if);
    const double step_time_s = Simulation(other, alone, {}, 1).run(alone).step_time_s();
    return {what_if.background->name, other.scenario.world_size(), step_time_s, beside_s};
}

/// Nobody whose lateness costs the others nothing: what they have to do meanwhile hides it.
std::optional<WaitedFor> waited_for(const SimulatedStep& step) {
    if (!step.last) return std::nullopt;
    const double waiting_s = step.others_wait_s(*step.last);
    if (waiting_s <= rounding_share * step.step_time_s()) return std::nullopt;
    return WaitedFor{step.classes.classes[step.last->rank_class].ranks, step.last->last_of,
                     step.last->collectives, waiting_s};
}

StepTimeline slowest(std::vector<StepTimeline> steps) {
    return std::move(*std::max_element(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
        return a.step_time_s < b.step_time_s;
    }));
}

/// All that one simulated step tells; the interval is the closed form's, in proportion.
SimReport report_of(const Plan& plan, const SimulatedStep& step, StepTimeline closed_form) {
    SimReport report;
    report.closed_form = std::move(closed_form);
    const double reference = report.closed_form.step_time_s;
    for (const RankGroup& group : plan.rank_groups) {
        StepTimeline timeline = step.timelines[step.classes.class_of(group.ranks.front().first)];
        timeline.fidelity = "coupled flows";
        timeline.low_s = reference > 0 ? timeline.step_time_s * report.closed_form.low_s / reference : 0;
        timeline.high_s = reference > 0 ? timeline.step_time_s * report.closed_form.high_s / reference : 0;
        report.rank_groups.push_back(std::move(timeline));
    }
    report.throughput = throughput(plan, step.step_time_s());
    report.links = sim::link_loads(step.programs, step.classes, plan.scenario.cluster, step.step_time_s());
    return report;
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point began) {
    return std::chrono::duration<double>(Clock::now() - began).count();
}

}  // namespace

SimReport simulate(const Plan& plan, const SimOptions& options) {
    const auto began = Clock::now();
    const SimulatedStep step = Simulation(plan, {}, options, 1).run({});
    SimReport report = report_of(plan, step, closed_form_step(plan, 0));
    report.wall_s = seconds_since(began);
    return report;
}

WhatIfStep simulate(const Plan& plan, const WhatIf& what_if, const SimOptions& options) {
    const auto began = Clock::now();
    const std::vector<Cause> causes = causes_of(what_if);
    Simulation simulation(plan, what_if, options, 1 + causes.size());
    SimulatedStep step = simulation.run({});

    WhatIfReport report;
    report.asked = what_if;
    report.step_time_without_s = step.step_time_s();
    for (const Cause& cause : causes) {
        SimulatedStep with = simulation.run(cause.what_if);
        report.causes.push_back(difference(cause.name, step, with));
        step = std::move(with);
    }
    if (!causes.empty()) report.waited_for = waited_for(step);
    if (simulation.other_plan())
        report.background = neighbour(*simulation.other_plan(), what_if, step.background_step_s);

    WhatIfStep result{report_of(plan, step, slowest(closed_form_steps(plan, step.classes))),
                      std::move(report)};
    sim::add_fabric_loads(result.step.links, step.programs, step.classes, simulation.routes(what_if),
                          step.step_time_s());
    result.step.wall_s = seconds_since(began);
    return result;
}

}  // namespace zeroplan
