#pragma once
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zeroplan {

/// Removes the keys of `training` whose value is what the rest of the document makes their default: degrees,
/// dtypes and groups that a scenario states once it was written back. Reading the result gives the same
/// scenario, but the keys follow when others change. A document that can't be read stays as it is: its reader
/// will say why.
void drop_restated_defaults(nlohmann::json& document, const std::string& file);

}  // namespace zeroplan
