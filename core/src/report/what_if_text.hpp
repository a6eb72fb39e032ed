#pragma once
#include "report/text_page.hpp"
#include "zeroplan/what_if_report.hpp"

namespace zeroplan {

/// The step with and without, cause by cause, and who is waited for.
void add_what_if(TextPage& page, const WhatIfReport& report);
/// Goodput at the interval asked for, the best one and those of the rules.
void add_goodput(TextPage& page, const Goodput& run, double step_time_s);

}  // namespace zeroplan
