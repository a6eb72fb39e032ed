#pragma once
#include <nlohmann/json_fwd.hpp>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan {

/// `cluster` of a scenario (SCENARIO.md) with all defaults filled in: {"topology": NAME or file, "nodes": …,
/// overrides}, or inline. `place` is where the object stands. An empty object is one node of dgx-h100.
/// Throws Error with pointer, both values and a way out for unknown keys and values that cannot be.
ClusterSpec read_cluster(const nlohmann::json& cluster, ErrorPlace place);

}  // namespace zeroplan
