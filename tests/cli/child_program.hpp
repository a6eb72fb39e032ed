#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/run_program.hpp"

namespace zeroplan::test {

/// A program of this build that runs beside the test, which may send it signals; killed if the test ends
/// first.
class ChildProgram {
public:
    /// `name`: a program in the build's bin folder; `environment` holds further NAME=VALUE.
    ChildProgram(const std::string& name, const std::vector<std::string>& arguments,
                 const std::vector<std::string>& environment = {});
    ChildProgram(const ChildProgram&) = delete;
    ChildProgram& operator=(const ChildProgram&) = delete;
    ~ChildProgram();

    pid_t pid() const { return pid_; }
    /// Waits until it has ended.
    Outcome wait();

private:
    std::string out_, err_;  ///< files
    pid_t pid_ = 0;
    bool ended_ = false;
};

/// Processes that `parent` has started and that are still there.
std::vector<pid_t> children_of(pid_t parent);
/// Waits until `parent` has `count` children.
std::vector<pid_t> wait_for_children(pid_t parent, std::size_t count);
bool exists(pid_t process);

}  // namespace zeroplan::test
