#pragma once
#include "zeroplan/plan.hpp"

namespace zeroplan {

/// Warns of keys of an engine's own objects, and of offload, that this plan doesn't change with.
void add_engine_warnings(Plan& plan);

}  // namespace zeroplan
