#pragma once
#include <string>
#include <vector>

namespace zeroplan::tool {

/// What the program zeroplan-<name> beside this one writes to standard output when started with `arguments`;
/// its standard error goes where ours does. Throws Error{not_found} if it was not built, Error{run_failed} if
/// it ends with a status above 1 (0 and 1 are results, see CLI.md) or by a signal.
std::string output_of_sibling(const std::string& name, const std::vector<std::string>& arguments);

}  // namespace zeroplan::tool
