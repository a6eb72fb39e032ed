#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

namespace zeroplan::runner {

/// A process, told apart from a later one that got the same number.
struct ProcessIdentity {
    pid_t pid = 0;
    unsigned long long start_time = 0;  ///< in clock ticks since boot
    friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

ProcessIdentity this_process();
/// False once the process has ended, even if its parent hasn't collected it yet.
bool is_running(const ProcessIdentity& process);

std::string to_text(const ProcessIdentity& process);
std::optional<ProcessIdentity> process_identity_from_text(const std::string& text);

/// The machine, or container, whose processes see each other: equal for two ranks if and only if they can
/// share memory and watch each other. `name` is for people.
struct HostIdentity {
    std::string id, name;
};
HostIdentity this_host();

}  // namespace zeroplan::runner
