#pragma once
#include <nlohmann/json_fwd.hpp>

#include "json/object_reader.hpp"
#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/what_if.hpp"

namespace zeroplan {

/// `leaf_switches`, `fabric`, `placement` and `background` of a what_if, checked against each other: every
/// node of both jobs has its place. Throws Error{invalid_input}, and what the other job's scenario is refused
/// for.
void read_what_if_fabric(const ObjectReader& reader, const ClusterSpec& cluster, WhatIf& what_if);

void write_what_if_fabric(const WhatIf& what_if, nlohmann::ordered_json& out);

}  // namespace zeroplan
