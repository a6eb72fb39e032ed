#pragma once
#include <nlohmann/json_fwd.hpp>

#include "zeroplan/report.hpp"

namespace zeroplan {

/// The slowest rank group's critical path by section and phase.
nlohmann::ordered_json critical_path_json(const Plan& plan, const SimReport& report);
/// What computing waits for on the critical path, in seconds: "all_gather shard group".
nlohmann::ordered_json exposed_by_cause_json(const Plan& plan, const SimReport& report);
/// The different collectives of its step with NCCL's choice for each.
nlohmann::ordered_json collectives_json(const Plan& plan, const SimReport& report);

}  // namespace zeroplan
