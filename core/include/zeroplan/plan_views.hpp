#pragma once
#include <optional>
#include <string>

#include "zeroplan/compare_stages.hpp"
#include "zeroplan/deepspeed_estimator.hpp"
#include "zeroplan/explain.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan {

/// What `plan` may be asked for besides the plan itself.
struct PlanViews {
    std::optional<Explanation> explanation;        ///< --explain
    std::optional<StageComparison> stages;         ///< --compare-stages
    std::optional<EstimatorComparison> estimator;  ///< --against deepspeed-estimator
    bool any() const { return explanation || stages || estimator; }
};

/// Verdict, remedies and scenario, then every view.
std::string plan_views_text(const Plan& plan, const PlanViews& views, const TextStyle& style = {});
/// The plan's JSON with the views under "explain", "compare_stages" and "against".
std::string plan_views_json(const Plan& plan, const PlanViews& views, int indent = 2);

}  // namespace zeroplan
