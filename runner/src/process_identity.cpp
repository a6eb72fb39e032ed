#include "process_identity.hpp"

#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

namespace zeroplan::runner {
namespace {

struct ProcessState {
    char state = 'X';
    unsigned long long start_time = 0;
};

/// Fields 3 and 22 of /proc/<pid>/stat; field 2 is a name in parentheses that may hold anything.
std::optional<ProcessState> state_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) return std::nullopt;
    std::istringstream fields(text.substr(name_end + 1));
    ProcessState result;
    fields >> result.state;
    std::string skipped;
    for (int field = 4; field < 22; ++field) fields >> skipped;
    if (!(fields >> result.start_time)) return std::nullopt;
    return result;
}

std::string line_of(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::string link_of(const char* path) {
    std::array<char, 256> target{};
    const ssize_t length = readlink(path, target.data(), target.size());
    return length < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(length));
}

}  // namespace

ProcessIdentity this_process() {
    const auto state = state_of(getpid());
    return {getpid(), state ? state->start_time : 0};
}

bool is_running(const ProcessIdentity& process) {
    const auto state = state_of(process.pid);
    return state && state->start_time == process.start_time && state->state != 'Z' && state->state != 'X';
}

std::string to_text(const ProcessIdentity& process) {
    return std::to_string(process.pid) + " " + std::to_string(process.start_time);
}

std::optional<ProcessIdentity> process_identity_from_text(const std::string& text) {
    std::istringstream fields(text);
    ProcessIdentity result;
    if (!(fields >> result.pid >> result.start_time)) return std::nullopt;
    return result;
}

HostIdentity this_host() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return {line_of("/proc/sys/kernel/random/boot_id") + " " + link_of("/proc/self/ns/pid"), name.data()};
}

}  // namespace zeroplan::runner
