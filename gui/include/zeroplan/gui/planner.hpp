#pragma once
#include <QFutureWatcher>
#include <QObject>
#include <QThreadPool>
#include <memory>
#include <optional>

#include "zeroplan/fabric_sites.hpp"
#include "zeroplan/gui/group_view.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/step_timeline.hpp"
#include "zeroplan/topology_sources.hpp"
#include "zeroplan/what_if_report.hpp"

namespace zeroplan::gui {

/// A plan with what the views show of it, computed off the window's thread.
struct Planned {
    ScenarioRequest request;
    std::shared_ptr<const Plan> plan;  ///< ranks that the what-if makes different apart
    WhatIf what_if;
    FabricSites sites;                     ///< where the nodes of both jobs are; nothing on a single switch
    TopologySources sources;               ///< of the figures of the cluster's links
    std::optional<Goodput> goodput;        ///< where the what-if says how often what fails
    GroupView fullest;                     ///< of the fullest rank group
    std::optional<StepTimeline> timeline;  ///< closed form of that group, without the what-if
    std::optional<StepTimeline> slowest;   ///< closed form of the slowest rank, with the what-if
    std::optional<Throughput> throughput;
    std::optional<Error> no_time;  ///< why there is no timeline
    double seconds = 0;            ///< what computing all this took
};

/// Either a plan or the reason why there is none.
struct PlanOutcome {
    ScenarioRequest request;
    std::shared_ptr<const Planned> planned;
    std::optional<Error> error;
};
/// Throws nothing: what goes wrong is in the outcome.
PlanOutcome plan_now(const ScenarioRequest& request);

/// Plans one request at a time. A request that comes while another is computed waits, and only the newest
/// waits: dragging a slider plans as often as the machine can, and its last position always.
class Planner : public QObject {
    Q_OBJECT
public:
    explicit Planner(QObject* parent = nullptr);
    ~Planner() override;
    void request(const ScenarioRequest& request);
    bool busy() const { return running_; }

Q_SIGNALS:
    void planned(const zeroplan::gui::PlanOutcome& outcome);

private:
    void start(const ScenarioRequest& request);
    void finish();

    QThreadPool thread_;
    QFutureWatcher<PlanOutcome> watcher_;
    std::optional<ScenarioRequest> waiting_;
    bool running_ = false;  ///< until planned() was emitted; the watcher's future ends a little earlier
};

}  // namespace zeroplan::gui
