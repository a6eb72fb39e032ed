#pragma once
#include <string_view>

#include "zeroplan/error.hpp"
#include "zeroplan/report.hpp"

namespace CLI {
class App;
}

namespace zeroplan::command {

/// --json: one JSON object on standard output and nothing else there. --quiet: no messages, no text report.
struct OutputFlags {
    bool json = false, quiet = false;
    bool reports() const { return json || !quiet; }
};
void add_output_flags(CLI::App& app, OutputFlags& flags);

/// Colour if standard output is a terminal that can show it and NO_COLOR is not set; the terminal's width, at
/// most 100 columns, or 100 elsewhere.
TextStyle terminal_style();

/// Writes to standard output, with a newline at the end if there is none. Throws Error{run_failed} if it
/// can't be written: what was asked for is done, and lost. Ends by SIGPIPE where the reader has gone.
void print(std::string_view text);
/// "zeroplan: warning: …" on standard error. Control characters in messages are escaped (printable.hpp).
void print_warning(std::string_view message);
/// "zeroplan: error: file: pointer: message" and the hint on a line of its own, on standard error.
void print_error(const Error& error);

}  // namespace zeroplan::command
