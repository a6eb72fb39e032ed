#pragma once
#include <nlohmann/json_fwd.hpp>

#include "zeroplan/plan.hpp"

namespace zeroplan {

/// The plan's report, as plan_json writes it and others start from.
nlohmann::ordered_json plan_to_json(const Plan& plan);

}  // namespace zeroplan
