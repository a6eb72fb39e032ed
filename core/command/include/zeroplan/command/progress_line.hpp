#pragma once
#include <chrono>
#include <string>

namespace zeroplan::command {

/// "<what is done> 42 %" on standard error, rewritten in place: only on a terminal, and only once the work
/// has taken half a second. An interrupt leaves a clean line behind.
class ProgressLine {
public:
    ProgressLine(std::string what, bool wanted);
    void show(double share);
    void clear();

private:
    std::string what_;
    bool on_terminal_, shown_ = false;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace zeroplan::command
