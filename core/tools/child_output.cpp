#include "child_output.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "subcommand.hpp"
#include "zeroplan/error.hpp"

namespace zeroplan::tool {
namespace {

[[noreturn]] void fail(const std::string& program, int error) {
    throw Error(ErrorCode::run_failed, fmt::format("cannot start {}: {}", program, std::strerror(error)));
}

/// Starts the program with its standard output going to `output`.
pid_t start(const std::string& path, const std::vector<std::string>& arguments, int output) {
    std::vector<std::string> words{path};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    pid_t child = 0;
    const int error = posix_spawn(&child, path.c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) fail(path, error);
    return child;
}

std::string read_all(int from) {
    std::string text;
    std::array<char, 16384> buffer;
    for (;;) {
        const ssize_t got = ::read(from, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
}

void check_end(pid_t child, const std::string& path) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status))
        throw Error(ErrorCode::run_failed, fmt::format("{} was ended by signal {} ({})", path,
                                                       WTERMSIG(status), strsignal(WTERMSIG(status))));
    if (WEXITSTATUS(status) > 1)
        throw Error(ErrorCode::run_failed, fmt::format("{} ended with status {}", path, WEXITSTATUS(status)));
}

}  // namespace

std::string output_of_sibling(const std::string& name, const std::vector<std::string>& arguments) {
    const std::string path = sibling_path(name);
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) fail(path, errno);
    pid_t child = 0;
    try {
        child = start(path, arguments, pipe[1]);
    } catch (...) {
        ::close(pipe[0]);
        ::close(pipe[1]);
        throw;
    }
    ::close(pipe[1]);
    std::string text = read_all(pipe[0]);
    ::close(pipe[0]);
    check_end(child, path);
    return text;
}

}  // namespace zeroplan::tool
