#pragma once
#include <QObject>
#include <QProcess>
#include <QTemporaryDir>
#include <memory>
#include <vector>

#include "zeroplan/gui/group_view.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_timeline.hpp"
#include "zeroplan/what_if_report.hpp"

namespace zeroplan::gui {

/// What the window takes from `zeroplan-sim --json --csv`.
struct Simulated {
    std::shared_ptr<const Plan> plan;
    std::vector<StepTimeline> rank_groups;  ///< same order as Plan::rank_groups
    GroupView fullest;                      ///< of the fullest rank group, ready to be shown
    Throughput throughput;
    std::vector<LinkLoad> links;          ///< over the step, by class
    std::optional<WhatIfReport> what_if;  ///< without `asked`: the plan's request has it
    double wall_s = 0;                    ///< what the simulation itself took
};

/// The step of the slowest rank group, which is the job's; nullptr where there is none.
const StepTimeline* slowest_step(const Simulated& simulated);

/// That step with every rank's mean of what it stands without work: the slowest one waits least.
std::optional<StepTimeline> slowest_step_with_mean_wait(const Simulated& simulated);

/// Reads the report and the table of operations of a simulation of `plan`. Throws Error{run_failed} if they
/// are not what zeroplan-sim writes of this plan.
Simulated read_simulation(const QByteArray& report, const QByteArray& table,
                          std::shared_ptr<const Plan> plan);

/// Runs zeroplan-sim as a child process, since SimGrid may abort and must be stoppable. One at a time:
/// starting another ends the one that runs.
class Simulation : public QObject {
    Q_OBJECT
public:
    /// `program`: path of zeroplan-sim; "" = the one beside this program.
    explicit Simulation(QString program = {}, QObject* parent = nullptr);
    ~Simulation() override;

    /// Whether the program is there to be started.
    bool available() const;
    const QString& program() const { return program_; }
    /// A child runs, or its results are being read.
    bool running() const { return process_ != nullptr || reading_; }
    void start(std::shared_ptr<const Plan> plan, const WhatIf& what_if = {});
    /// Ends the child; no signal follows but cancelled().
    void cancel();

Q_SIGNALS:
    void simulated(const zeroplan::gui::Simulated& result);
    /// `refused`: the simulator does not model the plan, and says so; nothing is wrong.
    void failed(const QString& why, bool refused);
    void cancelled();

private:
    void finish(int status, QProcess::ExitStatus how);
    void read(const QByteArray& report, const QByteArray& table);
    void fail(const QString& why, bool refused = false);
    void drop_process();

    QString program_;
    std::unique_ptr<QTemporaryDir> folder_;
    QProcess* process_ = nullptr;
    std::shared_ptr<const Plan> plan_;
    bool reading_ = false;
    std::uint64_t started_ = 0;  ///< simulations so far: results of an earlier one are dropped
};

}  // namespace zeroplan::gui
