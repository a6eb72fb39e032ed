#pragma once
#include <span>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "zeroplan/cluster_spec.hpp"
#include "zeroplan/error.hpp"
#include "zeroplan/what_if.hpp"

namespace zeroplan {

/// `what_if` of a scenario on `cluster`. Throws Error{invalid_input} for ranks, nodes and links that the
/// cluster has not got, and for factors outside (0, 1].
WhatIf read_what_if(const nlohmann::json& value, const ClusterSpec& cluster, ErrorPlace place);

/// Every key that `what_if` may have.
std::span<const std::string_view> what_if_keys();

/// An empty object where nothing is different.
nlohmann::ordered_json what_if_to_json(const WhatIf& what_if);

}  // namespace zeroplan
