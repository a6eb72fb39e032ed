#include "zeroplan/gui/planner.hpp"

#include <QElapsedTimer>
#include <QtConcurrent>
#include <algorithm>
#include <new>
#include <utility>

#include "zeroplan/goodput.hpp"
#include "zeroplan/gui/fields.hpp"
#include "zeroplan/gui/what_if_words.hpp"
#include "zeroplan/rank_classes.hpp"
#include "zeroplan/what_if_io.hpp"

namespace zeroplan::gui {

namespace {

// What zeroplan-sim compares its step with.
StepTimeline slowest_with(const Plan& plan, const WhatIf& what_if) {
    const std::vector<StepTimeline> steps = closed_form_steps(plan, rank_classes(plan, what_if));
    return *std::max_element(steps.begin(), steps.end(), [](const StepTimeline& a, const StepTimeline& b) {
        return a.step_time_s < b.step_time_s;
    });
}

void add_time(Planned& planned) {
    try {
        planned.timeline = closed_form_step(*planned.plan, planned.plan->memory.worst_group);
        planned.slowest =
            slows_a_step(planned.what_if) ? slowest_with(*planned.plan, planned.what_if) : planned.timeline;
        planned.throughput = throughput(*planned.plan, planned.slowest->step_time_s);
    } catch (const Error& error) {
        planned.timeline.reset();
        planned.slowest.reset();
        planned.no_time = error;
    }
}

std::uint64_t background_nodes(const WhatIf& what_if) {
    if (!what_if.background) return 0;
    ScenarioRequest other;
    other.text = what_if.background->scenario_json;
    return nodes_in_use(resolve_scenario(other).cluster);
}

// A plan is the same whatever the what-if; only who is told apart differs, as in zeroplan-sim's report.
Plan with_ranks_apart(Plan plan, const WhatIf& what_if) {
    if (what_if.empty()) return plan;
    for (Warning& warning : what_if_warnings(plan.scenario, what_if))
        plan.warnings.push_back(std::move(warning));
    try {
        const RankClasses classes = rank_classes(plan, what_if);
        return split_rank_groups(std::move(plan), classes);
    } catch (const Error&) {  // not timed, and not simulated: add_time() says why
        return plan;
    }
}

void add_what_if(Planned& planned, Plan plan) {
    const ClusterSpec& cluster = plan.scenario.cluster;
    planned.sites = place_jobs(planned.what_if, nodes_in_use(cluster), background_nodes(planned.what_if));
    planned.sources = topology_sources(cluster);
    try {
        if (planned.what_if.failures) planned.goodput = goodput(plan, *planned.what_if.failures);
    } catch (const Error& error) {
        plan.warnings.push_back({"no_goodput", error.message()});
    }
    planned.plan = std::make_shared<const Plan>(with_ranks_apart(std::move(plan), planned.what_if));
}

std::shared_ptr<const Planned> planned_from(const ScenarioRequest& request) {
    QElapsedTimer timer;
    timer.start();
    auto planned = std::make_shared<Planned>();
    planned->request = request;
    check_texts(request);
    const Scenario scenario = resolve_scenario(request);
    planned->what_if = resolve_what_if(request, scenario);
    add_what_if(*planned, make_plan(scenario));
    add_time(*planned);
    planned->fullest = group_view(planned->plan, planned->plan->memory.worst_group,
                                  planned->timeline ? &*planned->timeline : nullptr);
    planned->seconds = static_cast<double>(timer.nsecsElapsed()) * 1e-9;
    return planned;
}

}  // namespace

PlanOutcome plan_now(const ScenarioRequest& request) {
    try {
        return {request, planned_from(request), {}};
    } catch (const Error& error) {
        return {request, {}, error};
    } catch (const std::bad_alloc&) {
        return {request, {}, Error(ErrorCode::run_failed, "this machine has too little memory for the plan")};
    } catch (const std::exception& error) {
        return {request,
                {},
                Error(ErrorCode::run_failed, std::string("internal error: ") + error.what(),
                      "Save the scenario and report it.")};
    }
}

Planner::Planner(QObject* parent) : QObject(parent) {
    thread_.setMaxThreadCount(1);
    connect(&watcher_, &QFutureWatcherBase::finished, this, &Planner::finish);
}

Planner::~Planner() {
    watcher_.waitForFinished();
}

void Planner::request(const ScenarioRequest& request) {
    if (running_)
        waiting_ = request;
    else
        start(request);
}

void Planner::start(const ScenarioRequest& request) {
    running_ = true;
    watcher_.setFuture(QtConcurrent::run(&thread_, plan_now, request));
}

void Planner::finish() {
    const PlanOutcome outcome = watcher_.result();
    running_ = false;
    if (waiting_) start(*std::exchange(waiting_, std::nullopt));
    Q_EMIT planned(outcome);
}

}  // namespace zeroplan::gui
