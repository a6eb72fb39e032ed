#pragma once
#include <nlohmann/json_fwd.hpp>

#include "json/object_reader.hpp"
#include "zeroplan/what_if.hpp"

namespace zeroplan {

/// `leaf_switches` or `fabric` of a what_if. Throws Error{invalid_input} if it has both, and for sizes and
/// ratios that no fabric has.
void read_fabric(const ObjectReader& what_if, WhatIf& result);

void write_fabric(const WhatIf& what_if, nlohmann::ordered_json& out);

}  // namespace zeroplan
