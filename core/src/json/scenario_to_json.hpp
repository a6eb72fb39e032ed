#pragma once
#include <nlohmann/json_fwd.hpp>

#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// The scenario with every default filled in, as scenario_json writes it and reports contain it.
nlohmann::ordered_json scenario_to_json(const Scenario& scenario);

}  // namespace zeroplan
