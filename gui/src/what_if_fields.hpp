#pragma once
#include <vector>

#include "zeroplan/gui/fields.hpp"

namespace zeroplan::gui {

/// The controls of `what_if`, with the flags of zeroplan sim.
std::vector<Field> what_if_fields();

}  // namespace zeroplan::gui
