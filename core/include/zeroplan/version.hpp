#pragma once

#include <string_view>

namespace zeroplan {

/// Version of the library, "major.minor.patch".
std::string_view version();

}  // namespace zeroplan
