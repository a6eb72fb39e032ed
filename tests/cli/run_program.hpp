#pragma once
#include <string>
#include <vector>

namespace zeroplan::test {

struct Outcome {
    int status = -1;  ///< exit status, or 128 + signal as a shell says it
    std::string out, err;
};

/// Runs the program of that name in the build's bin folder to its end; `environment` holds further
/// NAME=VALUE.
Outcome run_program(const std::string& program, const std::vector<std::string>& arguments,
                    const std::vector<std::string>& environment = {});
/// The same with standard output going to `descriptor`; `out` stays empty.
Outcome run_program_into(int descriptor, const std::string& program,
                         const std::vector<std::string>& arguments);
/// zeroplan itself.
Outcome zeroplan(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {});

/// A folder that goes away with the test.
class TemporaryFolder {
public:
    TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder();
    /// Path of `name` inside.
    std::string path(const std::string& name) const { return path_ + "/" + name; }
    /// Writes the file and returns its path.
    std::string file(const std::string& name, const std::string& text) const;

private:
    std::string path_;
};

}  // namespace zeroplan::test
