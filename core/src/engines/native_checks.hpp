#pragma once
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// Throws Error{not_supported} naming the key, its value and the way out for everything the native engine
/// doesn't do: it is data-parallel, keeps everything on the device and trains every parameter.
void check_native(const Scenario& scenario);

}  // namespace zeroplan
