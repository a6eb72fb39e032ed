#pragma once
#include <span>
#include <vector>

#include "zeroplan/step_program.hpp"

namespace zeroplan {

/// Buffers live right after operation `operation` of section `section` was issued, in order of allocation.
std::vector<BufferId> live_until(std::span<const Section> sections, std::uint32_t section,
                                 OperationId operation, std::span<const BufferId> before);

}  // namespace zeroplan
