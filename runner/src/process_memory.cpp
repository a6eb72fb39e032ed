#include "zeroplan/runner/process_memory.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "control_group_memory.hpp"

namespace zeroplan::runner {
namespace {

/// The figure of a line "Name:   123 kB".
std::optional<Bytes> kilobyte_line(const char* path, const std::string& name) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        if (line.rfind(name + ":", 0) != 0) continue;
        std::istringstream words(line.substr(name.size() + 1));
        std::uint64_t kib = 0;
        if (words >> kib) return 1024 * Bytes{kib};
    }
    return std::nullopt;
}

Bytes required_line(const char* path, const std::string& name) {
    const auto value = kilobyte_line(path, name);
    if (!value)
        throw Error(ErrorCode::run_failed, std::string(path) + " has no line " + name,
                    "the runner measures memory through /proc, which must be mounted");
    return *value;
}

}  // namespace

ProcessMemory process_memory() {
    return {required_line("/proc/self/status", "VmRSS"), required_line("/proc/self/status", "VmHWM")};
}

bool reset_process_peak() {
    std::ofstream file("/proc/self/clear_refs");
    file << "5" << std::flush;
    return file.good();
}

Bytes available_memory() {
    const Bytes available = required_line("/proc/meminfo", "MemAvailable");
    const auto left = control_group_memory();
    return left ? std::min(available, *left) : available;
}

}  // namespace zeroplan::runner
