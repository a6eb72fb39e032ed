#pragma once
#include <functional>

#include "zeroplan/report.hpp"
#include "zeroplan/what_if_report.hpp"

namespace zeroplan {

struct SimOptions {
    /// Called now and then with the share of the step that has been simulated, 0 to 1.
    std::function<void(double)> progress;
};

/// Simulates a steady step on SimGrid: every collective is one flow, coupled over all classes of links that
/// its ring or tree crosses, and shares them with the collectives that run at the same time. One rank stands
/// for all of its class (rank_classes.hpp). Switches are non-blocking unless a what-if says otherwise;
/// computation is not slowed down by communication.
///
/// SimGrid runs in a child process, since it is one a process and aborts on misuse: call this from a process
/// that has no other threads, or soon after an exec. Throws Error{run_failed} with the child's last words if
/// it dies, and what closed_form_step throws.
SimReport simulate(const Plan& plan, const SimOptions& options = {});

/// A step with something different, and how it differs.
struct WhatIfStep {
    SimReport step;
    WhatIfReport what_if;
};
/// Simulates the step without what is different, too, and with one cause after the other. A rank group's time
/// line is that of its first rank: split_rank_groups() leaves no others in it.
WhatIfStep simulate(const Plan& plan, const WhatIf& what_if, const SimOptions& options = {});

}  // namespace zeroplan
