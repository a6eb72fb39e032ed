#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "nearest.hpp"
#include "subcommand.hpp"
#include "zeroplan/command/output.hpp"
#include "zeroplan/command/run_command.hpp"
#include "zeroplan/version.hpp"

namespace {

using zeroplan::Error;
using zeroplan::ErrorCode;

constexpr std::array<std::string_view, 9> subcommands{"plan",   "sim",  "run", "compare", "score",
                                                      "import", "list", "gui", "demo"};
/// Words of the project that a user may have read about.
constexpr std::array<std::string_view, 2> later{"search", "calibrate"};

template <typename Words>
bool contains(const Words& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

Error unknown_subcommand(std::string_view word) {
    const bool known_name = contains(later, word);
    const std::string near = zeroplan::nearest_hint(word, subcommands);
    return {known_name ? ErrorCode::not_supported : ErrorCode::invalid_input,
            known_name ? fmt::format("{} is not part of this version", word)
                       : fmt::format("there is no subcommand \"{}\"", word),
            near + (near.ends_with('?') ? " " : "; ") + "zeroplan --help tells what each does",
            {"command line", ""}};
}

int run_zeroplan(CLI::App& app, int argc, char** argv) {
    zeroplan::tool::Action chosen;
    zeroplan::tool::add_plan(app, chosen);
    zeroplan::tool::add_siblings(app);
    zeroplan::tool::add_compare(app, chosen);
    zeroplan::tool::add_score(app, chosen);
    zeroplan::tool::add_import(app, chosen);
    zeroplan::tool::add_list(app, chosen);
    zeroplan::tool::add_demo(app, chosen);
    return zeroplan::command::run_command(app, argc, argv, [&] {
        if (chosen) return chosen();
        zeroplan::command::print(app.help());
        return 2;
    });
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "Plans ZeRO training before it runs: memory of every rank, time of a step, and a real run to compare "
        "with.",
        "zeroplan"};
    app.set_version_flag("--version", fmt::format("zeroplan {}", zeroplan::version()));
    app.footer(
        "zeroplan SUBCOMMAND --help has the flags and an example.\n\n"
        "Example: does GPT-2 XL train on one RTX 4090 node?\n"
        "  zeroplan plan --model gpt2-xl --topology rtx-4090x8-pcie --zero 2");
    try {
        const std::string_view word = argc > 1 ? argv[1] : "";
        if (zeroplan::tool::is_sibling(word)) zeroplan::tool::become_sibling(argv[1], argc, argv);
        if (!word.empty() && word.front() != '-' && !contains(subcommands, word))
            throw unknown_subcommand(word);
    } catch (const Error& error) {
        zeroplan::command::print_error(error);
        return error.exit_status();
    }
    return run_zeroplan(app, argc, argv);
}
