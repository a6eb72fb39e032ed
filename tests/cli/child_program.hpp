#pragma once
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace zeroplan::cli {

/// How a program ended. `status` is its exit status, or minus the signal that killed it.
struct ProgramResult {
    int status = 0;
    std::string out, err;
};

/// A program of this build, started with its output caught in files. Killed if the test ends before it does.
class ChildProgram {
public:
    using Environment = std::map<std::string, std::string>;

    /// `name`: a program in the build's bin folder. Variables of `environment` are added to this process's.
    ChildProgram(const std::string& name, const std::vector<std::string>& arguments,
                 const Environment& environment = {});
    ChildProgram(const ChildProgram&) = delete;
    ChildProgram& operator=(const ChildProgram&) = delete;
    ~ChildProgram();

    pid_t pid() const { return pid_; }
    /// Waits until it has ended.
    ProgramResult wait();

private:
    std::string out_, err_;  ///< files
    pid_t pid_ = 0;
    bool ended_ = false;
};

ProgramResult run_program(const std::string& name, const std::vector<std::string>& arguments,
                          const ChildProgram::Environment& environment = {});

/// Processes that `parent` has started and that are still there.
std::vector<pid_t> children_of(pid_t parent);
/// Waits until `parent` has `count` children.
std::vector<pid_t> wait_for_children(pid_t parent, std::size_t count);
bool exists(pid_t process);

/// A folder for a test's files, removed with everything in it.
class TemporaryFolder {
public:
    TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder();
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    /// Writes the file and returns its path.
    std::string file(const std::string& name, const std::string& content) const;

private:
    std::string path_;
};

std::string content_of(const std::string& path);

}  // namespace zeroplan::cli
