#pragma once
#include <cstdint>
#include <optional>

#include "zeroplan/io.hpp"

namespace zeroplan {

/// cluster.gpus_used as the request has it, in its file or its settings; nothing where it is left to the
/// topology. Throws Error{invalid_input} for a file that can't be read or is no JSON.
std::optional<std::uint64_t> stated_gpus(const ScenarioRequest& request);

}  // namespace zeroplan
