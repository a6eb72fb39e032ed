#pragma once
#include <functional>

namespace CLI {
class App;
}

namespace zeroplan::command {

/// Parses the arguments, runs `body` and returns the exit status of CLI.md: body's own, 0 after --help, 2 for
/// wrong arguments or an Error, 3 for a failed run or a mistake of ours. Every error is printed, none
/// escapes; wrong flags come with the nearest known one. Results that could not be written to standard output
/// are an error.
int run_command(CLI::App& app, int argc, const char* const* argv, const std::function<int()>& body);

}  // namespace zeroplan::command
