#include "simulation.hpp"

#include <atomic>
#include <memory>
#include <new>

#include "child_process.hpp"
#include "executor.hpp"
#include "step_graph.hpp"
#include "waiting.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan::sim {
namespace {

NodeTimes times_of_runs(const std::vector<std::uint32_t>& node_of_run, const NodeTime* times) {
    NodeTimes result;
    result.reserve(node_of_run.size());
    for (const std::uint32_t node : node_of_run) result.push_back(times[node]);
    return result;
}

/// Executes a graph in a child process that writes into shared memory. By class: the times of its runs.
std::vector<NodeTimes> execute(const StepGraph& graph, const std::function<void(double)>& progress,
                               Execution* how_it_went = nullptr) {
    if (graph.background == 0) return std::vector<NodeTimes>(graph.node_of_run.size());

    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
    const SharedMemory memory(graph.nodes.size() * sizeof(NodeTime)), state(sizeof(Execution));
    auto* execution = new (state.data()) Execution;
    NodeTime* times = static_cast<NodeTime*>(memory.data());
    std::uninitialized_default_construct_n(times, graph.nodes.size());

    const auto report_progress = [&] {
        if (progress)
            progress(static_cast<double>(execution->finished.load()) / static_cast<double>(graph.background));
    };
    run_in_child([&] { execute_on_simgrid(graph, times, *execution); }, report_progress);
    std::vector<NodeTimes> result;
    for (const auto& runs : graph.node_of_run) result.push_back(times_of_runs(runs, times));
    if (how_it_went != nullptr) {
        how_it_went->background_steps = execution->background_steps;
        how_it_went->background_s = execution->background_s;
    }
    return result;
}

/// The plan of the job in the background, if there is one.
std::optional<Plan> background_plan(const WhatIf& what_if) {
    if (!what_if.background) return std::nullopt;
    ScenarioRequest request;
    request.text = what_if.background->scenario_json;
    return make_plan(resolve_scenario(request));
}

}  // namespace

Job::Job(const Plan& of) : plan(of), rates(link_rates(of.scenario.cluster)), programs(time_programs(of)) {}

std::vector<TimedProgram> Job::of_classes(const RankClasses& classes) const {
    std::vector<TimedProgram> result;
    for (std::uint32_t c = 0; c < classes.classes.size(); ++c)
        result.push_back(as_class(programs[classes.classes[c].program], classes, c, rates));
    return result;
}

Simulation::Simulation(const Plan& plan, const WhatIf& asked, const SimOptions& options, std::size_t runs)
    : options_(options),
      runs_(runs),
      job_(plan),
      other_plan_(background_plan(asked)),
      sites_(place_jobs(asked, nodes_in_use(plan.scenario.cluster),
                        other_plan_ ? nodes_in_use(other_plan_->scenario.cluster) : 0)) {
    if (other_plan_) other_.emplace(*other_plan_);
}

SimulatedStep Simulation::run(const WhatIf& what_if) {
    const FabricRoutes fabric = routes(what_if);
    const bool shared = fabric.blocks() && what_if.background.has_value();
    const std::vector<std::uint64_t> nobody;
    SimulatedStep step;
    step.classes = rank_classes(job_.plan, what_if,
                                job_sites(fabric, sites_, sites_.job, shared ? sites_.background : nobody));
    step.programs = job_.of_classes(step.classes);
    RankClasses other_classes;
    std::vector<TimedProgram> other_programs;
    std::optional<GraphJob> other;
    if (shared && other_) {
        other_classes =
            rank_classes(*other_plan_, {}, job_sites(fabric, sites_, sites_.background, sites_.job));
        other_programs = shortened(other_->of_classes(other_classes));
        other.emplace(GraphJob{other_programs, other_classes, other_->rates});
    }
    bool whole = true;
    step.timelines = time_steps(step.programs, [&](const std::vector<TimedProgram>& executed) {
        const StepGraph graph =
            build_step_graph({executed, step.classes, job_.rates}, other ? &*other : nullptr, fabric);
        Execution execution;
        std::vector<NodeTimes> times = execute(
            graph, [this](double share) { report(share); }, &execution);
        if (whole) {
            step.last = waited_for(step.programs, executed, graph, times, step.classes);
            if (execution.background_steps > 0)
                step.background_step_s =
                    execution.background_s / static_cast<double>(execution.background_steps);
        }
        whole = false;
        return times;
    });
    ++done_;
    return step;
}

FabricRoutes Simulation::routes(const WhatIf& what_if) const {
    return fabric_routes(what_if, job_.plan.scenario.cluster, sites_.nodes);
}

void Simulation::report(double share) const {
    if (options_.progress)
        options_.progress((static_cast<double>(done_) + share) / static_cast<double>(runs_));
}

}  // namespace zeroplan::sim
