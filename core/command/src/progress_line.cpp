#include "zeroplan/command/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <utility>

namespace zeroplan::command {
namespace {

constexpr char erase_line[] = "\r\033[K";

extern "C" void leave_clean_line(int signal) {
    // Standard error is the only thing to tidy: files are renamed into place when they are whole, and a
    // child process that works for us is in our process group, so the interrupt reaches it too.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, erase_line, sizeof erase_line - 1);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

}  // namespace

ProgressLine::ProgressLine(std::string what, bool wanted)
    : what_(std::move(what)), on_terminal_(wanted && isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(double share) {
    if (!on_terminal_ || std::chrono::steady_clock::now() - began_ < std::chrono::milliseconds(500)) return;
    if (!shown_) std::signal(SIGINT, leave_clean_line);
    shown_ = true;
    fmt::print(stderr, "\r{} {:.0f} %", what_, 100 * share);
    std::fflush(stderr);
}

void ProgressLine::clear() {
    if (!shown_) return;
    fmt::print(stderr, "{}", erase_line);
    std::fflush(stderr);
    std::signal(SIGINT, SIG_DFL);
    shown_ = false;
}

}  // namespace zeroplan::command
