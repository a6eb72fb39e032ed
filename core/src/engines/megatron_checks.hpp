#pragma once
#include <vector>

#include "engines/megatron_options.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Throws Error for what Megatron itself refuses (invalid_input) and for what these rules don't cover
/// (not_supported).
void check_megatron(const Scenario& scenario, const MegatronOptions& options);

/// Of keys that say something which has no effect in this scenario, or that is planned as something close.
std::vector<Warning> megatron_warnings(const Scenario& scenario, const MegatronOptions& options);

/// The scenario without what has no effect: model chunks where there is one pipeline stage.
Scenario without_idle_keys(Scenario scenario);

}  // namespace zeroplan
