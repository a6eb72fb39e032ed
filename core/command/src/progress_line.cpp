#include "zeroplan/command/progress_line.hpp"

#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

namespace zeroplan::command {
namespace {

constexpr char erase_line[] = "\r\033[K";

extern "C" void leave_clean_line(int signal) {
    // Standard error is the only thing to tidy: files are renamed into place when they are whole, and a
    // child process that works for us is in our process group, so the interrupt reaches it too.
    constexpr char farewell[] = "\r\033[Kinterrupted\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, farewell, sizeof farewell - 1);
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

namespace {

/// What the signal handler writes; set before the timer starts.
const char* volatile busy_what = "";
volatile std::sig_atomic_t busy_ticks = 0;
constexpr int ticks_per_s = 2;

extern "C" void tick(int) {
    // Only what a signal handler may do: no allocation, no streams.
    const int kept = errno;
    char line[80];
    std::size_t length = 0;
    const auto put = [&](const char* text) {
        while (*text != '\0' && length < sizeof line) line[length++] = *text++;
    };
    busy_ticks = busy_ticks + 1;
    put("\r");
    put(busy_what);
    put(" … ");
    char digits[12];
    std::size_t count = 0;
    for (int seconds = busy_ticks / ticks_per_s; count == 0 || seconds > 0; seconds /= 10)
        digits[count++] = static_cast<char>('0' + seconds % 10);
    while (count > 0 && length < sizeof line) line[length++] = digits[--count];
    put(" s");
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, length);
    errno = kept;
}

void set_timer(long microseconds) {
    const itimerval interval{{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &interval, nullptr);
}

}  // namespace

BusyLine::BusyLine(const char* what, bool wanted) : on_terminal_(wanted && isatty(STDERR_FILENO) == 1) {
    if (!on_terminal_) return;
    busy_what = what;
    busy_ticks = 0;
    struct sigaction action = {};
    action.sa_handler = tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    interrupt_before_ = std::signal(SIGINT, leave_clean_line);
    if (interrupt_before_ == SIG_IGN) std::signal(SIGINT, SIG_IGN);  // run in the background
    set_timer(1'000'000 / ticks_per_s);
}

BusyLine::~BusyLine() {
    if (!on_terminal_) return;
    set_timer(0);
    std::signal(SIGALRM, SIG_IGN);  // a tick may still be on its way
    std::signal(SIGINT, interrupt_before_);
    if (busy_ticks == 0) return;
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, erase_line, sizeof erase_line - 1);
}

}  // namespace zeroplan::command
