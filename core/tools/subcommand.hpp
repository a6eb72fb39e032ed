#pragma once
#include <functional>

#include <CLI/CLI.hpp>

namespace zeroplan::tool {

/// Each adds its subcommand to `app` and, when that was chosen, sets `chosen` to what it does; the result is
/// the exit status.
using Action = std::function<int()>;
void add_plan(CLI::App& app, Action& chosen);
void add_compare(CLI::App& app, Action& chosen);
void add_score(CLI::App& app, Action& chosen);
void add_import(CLI::App& app, Action& chosen);
void add_list(CLI::App& app, Action& chosen);
void add_demo(CLI::App& app, Action& chosen);

/// Adds the subcommands that other programs do, for the help text.
void add_siblings(CLI::App& app);
/// Whether `name` is done by another program: "sim", "run", "gui".
bool is_sibling(std::string_view name);
/// Path of the program zeroplan-<name> that stands beside this one. Throws Error{not_found}, naming the
/// package that its part needs.
std::string sibling_path(std::string_view name);
/// Becomes the program zeroplan-<name> that stands beside this one, with the arguments after argv[1]. Returns
/// only by throwing, as sibling_path() does or Error{io}.
[[noreturn]] void become_sibling(const char* name, int argc, char** argv);

}  // namespace zeroplan::tool
