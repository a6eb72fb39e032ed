#pragma once
#include "import/deepspeed_section.hpp"

namespace zeroplan {

/// fp16, bf16, data_types and communication_data_type. Throws Error{invalid_input} if fp16 and bf16 are both
/// enabled, which DeepSpeed refuses.
void import_precision(const DeepSpeedSection& config);

}  // namespace zeroplan
