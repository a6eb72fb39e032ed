#pragma once
#include <nlohmann/json_fwd.hpp>

#include "zeroplan/calibration.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan {

/// `cluster.calibration`: a file's path, relative to the file it stands in, an object, or a list of those,
/// which add up. Throws Error{invalid_input} for constants that nothing uses, and for two files that say
/// different things of one.
Calibration read_calibration(const nlohmann::json& value, const ErrorPlace& place);

/// As one object, files' contents included.
nlohmann::json calibration_json(const Calibration& calibration);

}  // namespace zeroplan
