#pragma once
#include <string>
#include <vector>

#include "zeroplan/io.hpp"
#include "zeroplan/what_if.hpp"

namespace zeroplan {

/// What the request asks, of the scenario that it resolves to (which has checked it).
WhatIf resolve_what_if(const ScenarioRequest& request, const Scenario& scenario);
/// scenario_json() with `what_if` in it.
std::string scenario_json(const Scenario& scenario, const WhatIf& what_if, int indent = 2);
/// `what_if` of a scenario file alone; {} where nothing is different.
std::string what_if_json(const WhatIf& what_if, int indent = 2);

/// What several `--straggler RANK=FACTOR`, `--slow-link LINK=FACTOR` mean; they replace the file's list.
/// Throws Error{invalid_input} without "=".
Setting straggler_setting(const std::vector<std::string>& texts, const std::string& origin);
Setting slow_link_setting(const std::vector<std::string>& texts, const std::string& origin);

/// "4:2": leaf switches of 4 nodes, oversubscribed 2 to 1.
Setting leaf_switches_setting(const std::string& text, const std::string& origin);
/// "single-switch", "rail-optimised:NODES:RATIO", "fat-tree:NODES:RATIO[:LEAVES:RATIO]", "torus:4x4x2[:B/S]".
/// Throws Error{invalid_input} for more parts than the kind has.
Setting fabric_setting(const std::string& text, const std::string& origin);
/// "packed", "spread", or nodes as "0-3,8".
Setting placement_setting(const std::string& text, const std::string& origin);
/// A scenario file, from the current folder.
Setting background_setting(const std::string& file, const std::string& origin);

/// What of it changes nothing, and why.
std::vector<Warning> what_if_warnings(const Scenario& scenario, const WhatIf& what_if);

/// "90", "90s", "1.5m", "50000h", "30d", "5y" (of 365 days) as seconds.
Setting duration_setting(std::string pointer, const std::string& text, std::string origin);

}  // namespace zeroplan
