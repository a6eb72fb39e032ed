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

/// "<what is done> … 3 s" on standard error for work that can't say how far it is: only on a terminal, from
/// half a second on, gone with the object. Ticks by SIGALRM, so that the work needs no thread and may fork;
/// one at a time in a process.
class BusyLine {
public:
    BusyLine(const char* what, bool wanted);
    ~BusyLine();
    BusyLine(const BusyLine&) = delete;
    BusyLine& operator=(const BusyLine&) = delete;

private:
    bool on_terminal_;
    void (*interrupt_before_)(int) = nullptr;  ///< what an interrupt did before
};

}  // namespace zeroplan::command
