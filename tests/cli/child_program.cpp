#include "cli/child_program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace zeroplan::test {
namespace {

std::string temporary_file() {
    std::string path = (std::filesystem::temp_directory_path() / "zeroplan-test-XXXXXX").string();
    const int descriptor = mkstemp(path.data());
    if (descriptor < 0) throw std::runtime_error("can't make a temporary file");
    close(descriptor);
    return path;
}

std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

ChildProgram::ChildProgram(const std::string& name, const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment)
    : out_(temporary_file()), err_(temporary_file()) {
    const std::string path = std::string(ZEROPLAN_BIN_DIR) + "/" + name;
    std::vector<std::string> words{name};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> variables = environment;
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (std::string& variable : variables) putenv(variable.data());
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(open(out_.c_str(), O_WRONLY), STDOUT_FILENO);
    dup2(open(err_.c_str(), O_WRONLY), STDERR_FILENO);
    execv(path.c_str(), argv.data());
    _exit(127);
}

ChildProgram::~ChildProgram() {
    if (!ended_) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    unlink(out_.c_str());
    unlink(err_.c_str());
}

Outcome ChildProgram::wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    ended_ = true;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content_of(out_),
            content_of(err_)};
}

std::vector<pid_t> children_of(pid_t parent) {
    const std::string process = std::to_string(parent);
    std::ifstream file("/proc/" + process + "/task/" + process + "/children");
    return {std::istream_iterator<pid_t>(file), {}};
}

std::vector<pid_t> wait_for_children(pid_t parent, std::size_t count) {
    for (;;) {
        auto children = children_of(parent);
        if (children.size() >= count) return children;
        if (!exists(parent)) throw std::runtime_error("the parent has ended");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

bool exists(pid_t process) {
    return kill(process, 0) == 0;
}

}  // namespace zeroplan::test
