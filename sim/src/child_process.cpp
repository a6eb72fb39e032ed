#include "child_process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "zeroplan/error.hpp"

namespace zeroplan::sim {
namespace {

constexpr std::size_t kept_output = 2000;
constexpr int poll_milliseconds = 100;

[[noreturn]] void fail(const char* what) {
    throw Error(ErrorCode::run_failed,
                fmt::format("the simulation could not be started: {}: {}", what, std::strerror(errno)));
}

[[noreturn]] void be_child(const std::function<void()>& body, int error_output, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(3);  // the parent ended before the line above
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(error_output, STDERR_FILENO);
    int status = 0;
    try {
        body();
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        status = 3;
    }
    std::fflush(stderr);
    _exit(status);  // not exit: buffers and handlers belong to the parent
}

/// What the child writes, the end of it, until it has closed its side.
std::string read_until_closed(int from, const std::function<void()>& meanwhile) {
    std::string output;
    for (;;) {
        pollfd waiting{from, POLLIN, 0};
        const int ready = poll(&waiting, 1, poll_milliseconds);
        if (ready < 0 && errno != EINTR) break;
        if (meanwhile) meanwhile();
        if (ready <= 0) continue;
        char buffer[4096];
        const ssize_t got = read(from, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        output.append(buffer, static_cast<std::size_t>(got));
        if (output.size() > 2 * kept_output) output.erase(0, output.size() - kept_output);
    }
    return output;
}

int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) fail("waitpid");
    return status;
}

/// The last line that says something; SimGrid ends with empty ones.
std::string last_words(const std::string& output) {
    const std::size_t end = output.find_last_not_of(" \n\t");
    if (end == std::string::npos) return "without a word";
    const std::size_t begin = output.find_last_of('\n', end);
    return "its last words: " + output.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
}

/// Signals that come from outside, not from what the program does.
bool is_from_outside(int signal) {
    for (const int outside : {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU})
        if (signal == outside) return true;
    return false;
}

[[noreturn]] void report_killed(int signal) {
    throw Error(ErrorCode::run_failed,
                fmt::format("the simulation was killed by signal {} ({})", signal, strsignal(signal)),
                signal == SIGKILL ? "often by the kernel for want of memory (its log says so): free some, or "
                                    "simulate fewer GPUs; `zeroplan plan` and the closed form need little"
                                  : "somebody or a limit ended it: run it again");
}

[[noreturn]] void report(int status, const std::string& output) {
    if (WIFSIGNALED(status) && is_from_outside(WTERMSIG(status))) report_killed(WTERMSIG(status));
    const std::string how = WIFSIGNALED(status) ? fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                                                              strsignal(WTERMSIG(status)))
                                                : fmt::format("ended with status {}", WEXITSTATUS(status));
    throw Error(
        ErrorCode::run_failed, fmt::format("the simulation {}, {}", how, last_words(output)),
        "this is a mistake of the program, not of the scenario; `zeroplan plan` and the closed form still "
        "answer");
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes)
    : bytes_(bytes), data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) fail("mmap");
}
SharedMemory::~SharedMemory() {
    munmap(data_, bytes_);
}

void run_in_child(const std::function<void()>& body, const std::function<void()>& meanwhile) {
    int ends[2];
    if (pipe(ends) != 0) fail("pipe");
    std::fflush(stdout);
    std::fflush(stderr);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        fail("fork");
    }
    if (child == 0) {
        close(ends[0]);
        be_child(body, ends[1], parent);
    }
    close(ends[1]);
    const std::string output = read_until_closed(ends[0], meanwhile);
    close(ends[0]);
    const int status = wait_for(child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) report(status, output);
}

}  // namespace zeroplan::sim
