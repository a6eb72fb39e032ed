#include "report/plan_views_text.hpp"

#include "report/plan_parts.hpp"

namespace zeroplan {

std::string plan_views_text(const Plan& plan, const PlanViews& views, const TextStyle& style) {
    TextPage page(style);
    add_verdict(page, plan);
    add_remedies(page, plan);
    add_scenario(page, plan);
    if (views.explanation) add_explanation(page, plan, *views.explanation);
    if (views.stages) add_stage_comparison(page, *views.stages);
    if (views.estimator) add_estimator(page, plan, *views.estimator);
    add_warnings(page, plan);
    return page.take();
}

}  // namespace zeroplan
