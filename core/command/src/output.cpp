#include "zeroplan/command/output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "printable.hpp"

namespace zeroplan::command {
namespace {

/// https://no-color.org: set and not empty means no colour; a dumb terminal has none.
bool colours(int descriptor) {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    if (no_color != nullptr && *no_color != '\0') return false;
    if (term == nullptr || std::strcmp(term, "dumb") == 0) return false;
    return isatty(descriptor) == 1;
}

std::string painted(std::string_view text, const char* colour, bool colourful) {
    return colourful ? fmt::format("\033[{}m{}\033[0m", colour, text) : std::string(text);
}

/// Messages are best effort: a closed standard error is no reason to fail.
void say(const std::string& text) {
    [[maybe_unused]] const auto written = std::fwrite(text.data(), 1, text.size(), stderr);
}

/// A reader that has seen enough (head, less) is nobody's failure: ends as a program does that lets SIGPIPE
/// end it, also where whoever started us has it ignored.
void end_quietly() {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
}

/// A message quotes what the user or a file says, which may be long and no text at all.
std::string for_people(std::string_view message) {
    constexpr std::size_t longest = 4096;  // a path's, and more than any list of ours
    return shortened(printable(message), longest);
}

}  // namespace

void add_output_flags(CLI::App& app, OutputFlags& flags) {
    app.add_flag("--json", flags.json, "One JSON object on standard output, nothing else there")
        ->group("Output");
    app.add_flag("--quiet", flags.quiet, "No report and no messages: exit status and files only")
        ->group("Output");
}

TextStyle terminal_style() {
    TextStyle style;
    style.colour = colours(STDOUT_FILENO);
    winsize size{};
    if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        style.width = std::min<std::size_t>(size.ws_col, style.width);
    return style;
}

void print(std::string_view text) {
    const bool newline = text.empty() || text.back() != '\n';
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
                         (!newline || std::fputc('\n', stdout) != EOF) && std::fflush(stdout) == 0;
    if (written) return;
    const int error = errno;
    if (error == EPIPE) end_quietly();
    throw Error(ErrorCode::run_failed, fmt::format("cannot write the result: {}", std::strerror(error)), {},
                {"standard output", ""});
}

void print_warning(std::string_view message) {
    say(fmt::format("zeroplan: {}: {}\n", painted("warning", "33", colours(STDERR_FILENO)),
                    for_people(message)));
}

void print_error(const Error& error) {
    std::string place;
    for (const std::string& part : {error.place().file, error.place().pointer})
        if (!part.empty()) place += for_people(part) + ": ";
    std::string text = fmt::format("zeroplan: {}: {}{}\n", painted("error", "1;31", colours(STDERR_FILENO)),
                                   place, for_people(error.message()));
    if (!error.hint().empty()) text += fmt::format("  hint: {}\n", for_people(error.hint()));
    say(text);
}

}  // namespace zeroplan::command
