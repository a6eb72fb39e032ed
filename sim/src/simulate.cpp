#include "zeroplan/simulate.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <new>

#include "child_process.hpp"
#include "executor.hpp"
#include "link_loads.hpp"
#include "step_graph.hpp"

namespace zeroplan {
namespace {

NodeTimes times_of_runs(const std::vector<std::uint32_t>& node_of_run, const NodeTime* times) {
    NodeTimes result;
    result.reserve(node_of_run.size());
    for (const std::uint32_t node : node_of_run) result.push_back(times[node]);
    return result;
}

/// Executes programs side by side in a child process that writes into shared memory.
std::vector<NodeTimes> execute(const std::vector<TimedProgram>& programs, const LinkRates& rates,
                               const SimOptions& options) {
    const sim::StepGraph graph = sim::build_step_graph(programs);
    if (graph.nodes.empty()) return std::vector<NodeTimes>(programs.size());

    using Counter = std::atomic<std::uint64_t>;
    static_assert(Counter::is_always_lock_free && sizeof(Counter) <= sizeof(NodeTime));
    const sim::SharedMemory memory((graph.nodes.size() + 1) * sizeof(NodeTime));
    auto* finished = new (memory.data()) Counter(0);
    NodeTime* times = static_cast<NodeTime*>(memory.data()) + 1;
    std::uninitialized_default_construct_n(times, graph.nodes.size());

    const auto report_progress = [&] {
        if (options.progress)
            options.progress(static_cast<double>(finished->load()) / static_cast<double>(graph.nodes.size()));
    };
    sim::run_in_child([&] { sim::execute_on_simgrid(graph, rates, times, *finished); }, report_progress);
    std::vector<NodeTimes> result;
    for (const auto& runs : graph.node_of_run) result.push_back(times_of_runs(runs, times));
    return result;
}

}  // namespace

SimReport simulate(const Plan& plan, const SimOptions& options) {
    const auto began = std::chrono::steady_clock::now();
    std::vector<TimedProgram> programs;
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) programs.push_back(time_program(plan, p));
    const LinkRates rates = link_rates(plan.scenario.cluster);
    const std::vector<StepTimeline> timelines = time_steps(
        programs,
        [&](const std::vector<TimedProgram>& executed) { return execute(executed, rates, options); });

    SimReport report;
    report.closed_form = closed_form_step(plan, 0);
    // The interval is the closed form's, in proportion.
    const double reference = report.closed_form.step_time_s;
    double step_time = 0;
    for (const RankGroup& group : plan.rank_groups) {
        StepTimeline timeline = timelines[group.program];
        timeline.fidelity = "coupled flows";
        timeline.low_s = reference > 0 ? timeline.step_time_s * report.closed_form.low_s / reference : 0;
        timeline.high_s = reference > 0 ? timeline.step_time_s * report.closed_form.high_s / reference : 0;
        step_time = std::max(step_time, timeline.step_time_s);
        report.rank_groups.push_back(std::move(timeline));
    }
    report.throughput = throughput(plan, step_time);
    report.links = sim::link_loads(programs.front(), plan.scenario.cluster, step_time);
    report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return report;
}

}  // namespace zeroplan
