#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/report.hpp"
#include "zeroplan/step_timeline.hpp"
#include "zeroplan/what_if.hpp"

namespace zeroplan {

/// One cause of a what-if, on top of those listed before it: the step with it, and what it adds. What ranks
/// wait is a mean over all ranks.
struct StepCause {
    std::string cause;  ///< "rank 5 computes at 0.8 of its speed"
    double step_time_s = 0;
    double added_s = 0;                        ///< to the step of the causes before it
    double added_exposed_communication_s = 0;  ///< of it, streams that only communicate
    double added_idle_s = 0;                   ///< of it, streams that stand still
    friend bool operator==(const StepCause&, const StepCause&) = default;
};

/// Who comes last to the collectives, and so is waited for by all other members.
struct WaitedFor {
    std::vector<RankRange> ranks;
    std::uint64_t last_of = 0, collectives = 0;  ///< of those it takes part in where somebody waits
    /// Of a step that those who meet it there don't compute beyond what it doesn't, mean over them; positive.
    double waiting_s = 0;
    friend bool operator==(const WaitedFor&, const WaitedFor&) = default;
};

/// A second job on the same fabric.
struct NeighbourJob {
    std::string name;
    std::uint64_t ranks = 0;
    double step_time_alone_s = 0;
    std::optional<double> step_time_s;  ///< beside this job, mean of its whole steps; none if none ended
    friend bool operator==(const NeighbourJob&, const NeighbourJob&) = default;
};

/// A step with and without what a what-if changes.
struct WhatIfReport {
    WhatIf asked;
    double step_time_without_s = 0;
    std::vector<StepCause> causes;  ///< the last one's step is the step
    std::optional<WaitedFor> waited_for;
    std::optional<NeighbourJob> background;
    friend bool operator==(const WhatIfReport&, const WhatIfReport&) = default;
};

/// A long run with failures: the share of its time that ends up in steps that are kept.
struct Goodput {
    double mtbf_s = 0;  ///< of the whole job
    double checkpoint_bytes = 0, checkpoint_s = 0, restart_s = 0;
    double interval_s = 0;  ///< between checkpoints, as asked for, else the best
    bool interval_is_given = false;
    double goodput = 0;
    double best_interval_s = 0, best_goodput = 0;  ///< by the exact renewal formula
    double young_interval_s = 0, young_goodput = 0;
    double daly_interval_s = 0, daly_goodput = 0;
    friend bool operator==(const Goodput&, const Goodput&) = default;
};

/// What a report of a simulated step tells besides.
struct SimExtras {
    std::optional<WhatIfReport> what_if;  ///< where something was to be different
    std::optional<Goodput> goodput;       ///< of a long run, where it was told how often what fails
    friend bool operator==(const SimExtras&, const SimExtras&) = default;
};
std::string sim_text(const Plan& plan, const SimReport& report, const SimExtras& extras,
                     const TextStyle& style = {});
std::string sim_json(const Plan& plan, const SimReport& report, const SimExtras& extras, int indent = 2);
/// What sim_text() says of the extras alone: the step cause by cause, and the long run of steps of
/// `step_time_s` with failures.
std::string what_if_text(const SimExtras& extras, double step_time_s, const TextStyle& style = {});
/// "goodput 98.63 % with 60 min of work between checkpoints, at best 99.02 % with 23.1 min".
std::string goodput_phrase(const Goodput& run);

}  // namespace zeroplan
