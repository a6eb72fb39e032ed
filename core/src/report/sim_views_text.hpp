#pragma once
#include "report/text_page.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan {

/// What the slowest rank group's step waits for from its start to its end, phase by phase.
void add_critical_path(TextPage& page, const Plan& plan, const SimReport& report);
/// The different collectives of a step, NCCL's choice for each, and what one takes.
void add_collectives(TextPage& page, const Plan& plan, const SimReport& report);
/// What each class of links carried, with the load over the step as a line of bars.
void add_links(TextPage& page, const Plan& plan, const SimReport& report);

}  // namespace zeroplan
