#pragma once
#include <chrono>

namespace zeroplan::tool {

/// "simulating 42 %" on standard error, rewritten in place: only on a terminal, and only once the work has
/// taken half a second. An interrupt leaves a clean line behind.
class ProgressLine {
public:
    explicit ProgressLine(bool wanted);
    void show(double share);
    void clear();

private:
    bool on_terminal_, shown_ = false;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace zeroplan::tool
