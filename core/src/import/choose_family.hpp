#pragma once
#include <string>

#include "import/config_families.hpp"
#include "import/config_object.hpp"

namespace zeroplan {

/// The family of a configuration: by its model_type, else by the first of its "architectures". Throws
/// Error{not_supported} for families that are not built and for unknown ones, naming the nearest, and
/// Error{invalid_input} where neither key is given.
const ConfigFamily& choose_family(const ConfigObject& config);

/// The first of "architectures", the class the file was saved from; "" if there is none.
std::string first_architecture(const ConfigObject& config);

}  // namespace zeroplan
