#pragma once
#include "report/text_page.hpp"
#include "zeroplan/plan_views.hpp"

namespace zeroplan {

void add_explanation(TextPage& page, const Plan& plan, const Explanation& explanation);
void add_stage_comparison(TextPage& page, const StageComparison& comparison);
void add_estimator(TextPage& page, const Plan& plan, const EstimatorComparison& comparison);

}  // namespace zeroplan
