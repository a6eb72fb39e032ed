#pragma once
#include <optional>
#include <string>

#include "zeroplan/units.hpp"

namespace zeroplan::runner {

/// What the memory control groups of this process leave: the least over its own group and all above it, of
/// version 2 and version 1 of the interface. Nothing where no group has a limit. Page cache that the kernel
/// can drop at once (inactive_file) counts as free.
///
/// membership  /proc/self/cgroup: lines "0::/path" (version 2) and "4:memory:/path" (version 1)
/// mount       where the groups are mounted
std::optional<Bytes> control_group_memory(const std::string& membership = "/proc/self/cgroup",
                                          const std::string& mount = "/sys/fs/cgroup");

}  // namespace zeroplan::runner
