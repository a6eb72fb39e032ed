#include "zeroplan/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <new>

#include "child_process.hpp"
#include "executor.hpp"
#include "link_loads.hpp"
#include "step_graph.hpp"
#include "waiting.hpp"
#include "zeroplan/rank_classes.hpp"

namespace zeroplan {
namespace {

NodeTimes times_of_runs(const std::vector<std::uint32_t>& node_of_run, const NodeTime* times) {
    NodeTimes result;
    result.reserve(node_of_run.size());
    for (const std::uint32_t node : node_of_run) result.push_back(times[node]);
    return result;
}

/// Executes a graph in a child process that writes into shared memory. By class: the times of its runs.
std::vector<NodeTimes> execute(const sim::StepGraph& graph, const std::function<void(double)>& progress) {
    if (graph.nodes.empty()) return std::vector<NodeTimes>(graph.node_of_run.size());

    using Counter = std::atomic<std::uint64_t>;
    static_assert(Counter::is_always_lock_free && sizeof(Counter) <= sizeof(NodeTime));
    const sim::SharedMemory memory((graph.nodes.size() + 1) * sizeof(NodeTime));
    auto* finished = new (memory.data()) Counter(0);
    NodeTime* times = static_cast<NodeTime*>(memory.data()) + 1;
    std::uninitialized_default_construct_n(times, graph.nodes.size());

    const auto report_progress = [&] {
        if (progress)
            progress(static_cast<double>(finished->load()) / static_cast<double>(graph.nodes.size()));
    };
    sim::run_in_child([&] { sim::execute_on_simgrid(graph, times, *finished); }, report_progress);
    std::vector<NodeTimes> result;
    for (const auto& runs : graph.node_of_run) result.push_back(times_of_runs(runs, times));
    return result;
}

/// A simulated step of all classes that the ranks fall into.
struct SimulatedStep {
    RankClasses classes;
    std::vector<TimedProgram> programs;   ///< by class
    std::vector<StepTimeline> timelines;  ///< by class
    std::optional<WaitedFor> waited_for;

    double step_time_s() const {
        double slowest = 0;
        for (const StepTimeline& timeline : timelines) slowest = std::max(slowest, timeline.step_time_s);
        return slowest;
    }
    /// Of a step that a class only communicates or stands idle.
    double without_work_s(std::size_t number) const {
        return timelines[number].exposed_communication_s + timelines[number].bubble_s;
    }
    /// How much longer others than `ranks` are without work than these, mean over the others.
    double others_wait_s(const std::vector<RankRange>& ranks) const {
        double sum = 0, others = 0;
        for (std::size_t c = 0; c < timelines.size(); ++c) {
            if (classes.classes[c].ranks == ranks) continue;
            sum += without_work_s(c) * static_cast<double>(classes.classes[c].count());
            others += static_cast<double>(classes.classes[c].count());
        }
        return others > 0 ? sum / others - without_work_s(classes.class_of(ranks.front().first)) : 0;
    }
    /// Mean over all ranks.
    double mean(double StepTimeline::*figure) const {
        double sum = 0, ranks = 0;
        for (std::size_t c = 0; c < timelines.size(); ++c) {
            sum += timelines[c].*figure * static_cast<double>(classes.classes[c].count());
            ranks += static_cast<double>(classes.classes[c].count());
        }
        return sum / ranks;
    }
};

class Simulation {
public:
    Simulation(const Plan& plan, const SimOptions& options, std::size_t runs)
        : plan_(plan), options_(options), runs_(runs), rates_(link_rates(plan.scenario.cluster)) {
        for (std::uint32_t p = 0; p < plan.programs.size(); ++p) programs_.push_back(time_program(plan, p));
    }

    SimulatedStep run(const WhatIf& what_if) {
        SimulatedStep step;
        step.classes = rank_classes(plan_, what_if);
        for (std::uint32_t c = 0; c < step.classes.classes.size(); ++c)
            step.programs.push_back(
                as_class(programs_[step.classes.classes[c].program], step.classes, c, rates_));
        bool whole = true;
        step.timelines = time_steps(step.programs, [&](const std::vector<TimedProgram>& executed) {
            const sim::StepGraph graph = sim::build_step_graph(executed, step.classes, rates_);
            std::vector<NodeTimes> times = execute(graph, [this](double share) { report(share); });
            if (whole) step.waited_for = sim::waited_for(step.programs, executed, graph, times, step.classes);
            whole = false;
            return times;
        });
        ++done_;
        return step;
    }

private:
    void report(double share) const {
        if (options_.progress)
            options_.progress((static_cast<double>(done_) + share) / static_cast<double>(runs_));
    }

    const Plan& plan_;
    const SimOptions& options_;
    std::size_t runs_, done_ = 0;
    LinkRates rates_;
    std::vector<TimedProgram> programs_;  ///< by program of the plan
};

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

StepTimeline slowest(std::vector<StepTimeline> steps) {
    return std::move(*std::max_element(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
        return a.step_time_s < b.step_time_s;
    }));
}

}  // namespace

SimReport simulate(const Plan& plan, const SimOptions& options) {
    const auto began = std::chrono::steady_clock::now();
    const std::vector<Cause> causes = causes_of(options.what_if);
    Simulation simulation(plan, options, 1 + causes.size());
    SimulatedStep step = simulation.run({});

    SimReport report;
    if (!options.what_if.empty()) {
        report.what_if.emplace();
        report.what_if->asked = options.what_if;
        report.what_if->step_time_without_s = step.step_time_s();
        for (const Cause& cause : causes) {
            SimulatedStep with = simulation.run(cause.what_if);
            report.what_if->causes.push_back(difference(cause.name, step, with));
            step = std::move(with);
        }
        if (!causes.empty() && step.waited_for) {
            report.what_if->waited_for = step.waited_for;
            report.what_if->waited_for->waiting_s = step.others_wait_s(step.waited_for->ranks);
        }
    }
    report.closed_form =
        causes.empty() ? closed_form_step(plan, 0) : slowest(closed_form_steps(plan, step.classes));
    // The interval is the closed form's, in proportion.
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
    report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return report;
}

}  // namespace zeroplan
