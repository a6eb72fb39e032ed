#pragma once
#include <span>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan {

/// `cluster` of a scenario (SCENARIO.md) with all defaults filled in: {"topology": NAME or file, "nodes": …,
/// overrides}, or inline. `place` is where the object stands.
///
/// An object that names neither topology nor GPU is taken as dgx-h100's, one node of it. A topology that is a
/// file (a
/// '/' in its name, or ".json" at the end) is looked up beside `place.file`, then in the working directory;
/// it is taken over inline, ClusterSpec::topology stays "". Inline, what is absent follows from the GPU: a
/// bus by its link, 8 GPUs a node, a host by the constants in cluster_json.cpp. `gpus_used` below a node's
/// GPUs uses part of one node; above, it must fill whole nodes, and gives their number if `nodes` is absent.
///
/// Throws Error with pointer, both values and a way out for unknown keys and values that cannot be.
ClusterSpec read_cluster(const nlohmann::json& cluster, ErrorPlace place);

/// Every key that `cluster` may have.
std::span<const std::string_view> cluster_keys();

/// The inverse, every key written out.
nlohmann::json cluster_json(const ClusterSpec& cluster);

}  // namespace zeroplan
