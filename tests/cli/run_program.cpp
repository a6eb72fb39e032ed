#include "cli/run_program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <variant>

extern char** environ;

namespace zeroplan::test {
namespace {

std::string read_all(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

/// Starts the program with standard output going to `out`, a path or else a descriptor, and messages to the
/// file `err`. Returns its exit status.
int run_to_end(const std::string& program, const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment, const std::variant<std::string, int>& out,
               const std::string& err) {
    std::vector<std::string> words{std::string(ZEROPLAN_BIN_DIR) + "/" + program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> variables(environment);
    for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (const auto* path = std::get_if<std::string>(&out))
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, path->c_str(), O_WRONLY | O_CREAT, 0600);
    else
        posix_spawn_file_actions_adddup2(&actions, std::get<int>(out), STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
    pid_t child = 0;
    const int failed = posix_spawn(&child, words.front().c_str(), &actions, nullptr, pointers(words).data(),
                                   pointers(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error("cannot start " + words.front());
    int status = 0;
    while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Outcome run_program(const std::string& program, const std::vector<std::string>& arguments,
                    const std::vector<std::string>& environment) {
    // Files instead of pipes: no output is too long and no reader has to keep up.
    const TemporaryFolder folder;
    const std::string out = folder.path("out"), err = folder.path("err");
    const int status = run_to_end(program, arguments, environment, out, err);
    return {status, read_all(out), read_all(err)};
}

Outcome run_program_into(int descriptor, const std::string& program,
                         const std::vector<std::string>& arguments) {
    const TemporaryFolder folder;
    const std::string err = folder.path("err");
    const int status = run_to_end(program, arguments, {}, descriptor, err);
    return {status, "", read_all(err)};
}

Outcome zeroplan(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
    return run_program("zeroplan", arguments, environment);
}

TemporaryFolder::TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "zeroplan_cli_XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
}

}  // namespace zeroplan::test
