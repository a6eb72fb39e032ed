#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "zeroplan/io.hpp"

namespace zeroplan {

/// A key that an imported file gave: nothing above it did.
struct AppliedImport {
    std::string file;
    Setting setting;
};

/// A scenario as JSON, before it is read: file or text, then the settings, over what other programs' files
/// say, over the preset's own defaults.
struct ScenarioDocument {
    nlohmann::json json;
    std::string file;  ///< "" if it came as text or from flags alone
    std::vector<AppliedImport> imported;
};

/// Throws Error{invalid_input} for text that is no JSON object and for settings with a wrong pointer.
///
/// Settings mean what a user expects of them: `/cluster/topology` replaces all hardware that the file
/// describes, a number of GPUs or of nodes replaces the file's other one, and a key of the file that only
/// restates its default (every scenario that was written back has them all) follows the settings as if it
/// were absent.
ScenarioDocument merge_scenario(const ScenarioRequest& request);

}  // namespace zeroplan
