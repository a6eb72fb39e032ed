#pragma once
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// Throws Error{not_supported} for what llm.c hasn't got: it trains GPT-2 with its own kernels and AdamW,
/// data-parallel, all on the device.
void check_llm_c(const Scenario& scenario);

}  // namespace zeroplan
