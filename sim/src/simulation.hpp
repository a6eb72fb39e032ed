#pragma once
#include <optional>
#include <vector>

#include "waiting.hpp"
#include "zeroplan/fabric_sites.hpp"
#include "zeroplan/rank_classes.hpp"
#include "zeroplan/simulate.hpp"

namespace zeroplan::sim {

/// A simulated step of all classes that the ranks fall into.
struct SimulatedStep {
    RankClasses classes;
    std::vector<TimedProgram> programs;       ///< by class
    std::vector<StepTimeline> timelines;      ///< by class
    std::optional<LastClass> last;            ///< whom others wait for
    std::optional<double> background_step_s;  ///< of the other job, if one of its steps ended

    double step_time_s() const {
        double slowest = 0;
        for (const StepTimeline& timeline : timelines) slowest = std::max(slowest, timeline.step_time_s);
        return slowest;
    }
    /// Of a step that a class only communicates or stands idle.
    double without_work_s(std::size_t number) const {
        return timelines[number].exposed_communication_s + timelines[number].bubble_s;
    }
    /// How much longer those who meet a class in collectives are without work than it, mean over them.
    double others_wait_s(const LastClass& of) const {
        double sum = 0, others = 0;
        for (const std::uint32_t c : of.others) {
            sum += without_work_s(c) * static_cast<double>(classes.classes[c].count());
            others += static_cast<double>(classes.classes[c].count());
        }
        return others > 0 ? sum / others - without_work_s(of.rank_class) : 0;
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

/// A job's plan with its programs timed once.
struct Job {
    explicit Job(const Plan& of);
    std::vector<TimedProgram> of_classes(const RankClasses& classes) const;

    const Plan& plan;
    LinkRates rates;
    std::vector<TimedProgram> programs;  ///< by program of the plan
};

/// Simulates a plan's step under one what-if after the other; all of them are parts of `asked`, which says
/// where both jobs are.
class Simulation {
public:
    /// `runs`: how many there will be, for the progress.
    Simulation(const Plan& plan, const WhatIf& asked, const SimOptions& options, std::size_t runs);

    /// The plan of the job in the background, if there is one.
    const std::optional<Plan>& other_plan() const { return other_plan_; }
    SimulatedStep run(const WhatIf& what_if);
    /// Of the fabric that a what-if asks for.
    FabricRoutes routes(const WhatIf& what_if) const;

private:
    void report(double share) const;

    const SimOptions& options_;
    std::size_t runs_, done_ = 0;
    Job job_;
    std::optional<Plan> other_plan_;
    std::optional<Job> other_;
    FabricSites sites_;
};

}  // namespace zeroplan::sim
