#pragma once
#include "import/deepspeed_section.hpp"

namespace zeroplan {

/// offload_optimizer and offload_param, and the keys that stood for them before there were objects.
void import_offloads(const DeepSpeedSection& zero, std::uint32_t stage);

}  // namespace zeroplan
