#pragma once

namespace zeroplan::runner {

/// Environment of a rank that launch() started: the descriptor to which it writes its error.
inline constexpr const char* launched_by_us = "ZEROPLAN_RUN_ERROR_FD";

}  // namespace zeroplan::runner
