#include "zeroplan/command/run_command.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "nearest.hpp"
#include "zeroplan/command/output.hpp"

namespace zeroplan::command {
namespace {

constexpr int bad_input = 2, failed = 3;

/// A file that we open must not become descriptor 0, 1 or 2 because the caller closed those: reports would
/// end up in it. Writing to the placeholder fails, which is what the caller asked for.
void occupy_standard_descriptors() {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(descriptor, F_GETFD) == -1 && open("/dev/null", O_RDONLY | O_CLOEXEC) == -1) return;
}

/// A limit on the size of files is an error of writing like a full disk, not the end of the process with half
/// a file left beside.
void report_file_size_limits() {
    std::signal(SIGXFSZ, SIG_IGN);
}

std::vector<std::string> known_flags(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames())
            if (!option->get_group().empty()) names.push_back("--" + name);
    return names;
}

bool takes_scenarios(const CLI::App& app) {
    return app.get_option_no_throw("--scenario") != nullptr;
}

/// The subcommand that was being parsed, else the program itself.
const CLI::App& innermost(const CLI::App& app) {
    const auto parsed = app.get_subcommands();
    return parsed.empty() ? app : innermost(*parsed.front());
}

Error explained(const CLI::App& app, const CLI::ParseError& error) {
    const CLI::App& at = innermost(app);
    const std::string program = &at == &app ? app.get_name() : app.get_name() + " " + at.get_name();
    const std::string help = program + " --help lists the flags";
    const auto left_over = app.remaining(true);
    if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || left_over.empty())
        return {ErrorCode::invalid_input, error.what(), help, {"command line", ""}};
    const std::string& wrong = left_over.front();
    const std::string name = wrong.substr(0, wrong.find('='));
    if (!wrong.starts_with('-') && ::access(wrong.c_str(), F_OK) == 0 && takes_scenarios(at))
        return {ErrorCode::invalid_input,
                fmt::format("the file {} stands here without a flag", wrong),
                fmt::format("a scenario is given with --scenario {0}, a model with --model {0}", wrong),
                {"command line", ""}};
    const auto near = nearest(name, known_flags(at));
    return {ErrorCode::invalid_input,
            fmt::format("{} is not known here", wrong),
            near ? fmt::format("did you mean {}?", *near) : help,
            {"command line", ""}};
}

/// "--csv", or what the help calls a word without a flag.
std::string name_of(const CLI::Option& option) {
    return option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames().front();
}

/// Nothing has an empty name or value; a shell variable that is not set gives one.
void refuse_empty_values(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
        const auto& values = option->results();
        const bool takes_a_value = option->get_expected_min() > 0 && option->get_items_expected_max() > 0;
        if (takes_a_value && std::find(values.begin(), values.end(), "") != values.end())
            throw Error(ErrorCode::invalid_input, "an empty value is given",
                        fmt::format("give {}, or leave {} out; is a variable of the shell not set?",
                                    option->get_type_name(), name_of(*option)),
                        {"command line", name_of(*option)});
    }
    for (const CLI::App* subcommand : app.get_subcommands()) refuse_empty_values(*subcommand);
}

int guarded(const std::function<int()>& body) {
    try {
        return body();
    } catch (const Error& error) {
        print_error(error);
        return error.exit_status();
    } catch (const std::bad_alloc&) {
        print_error({ErrorCode::run_failed, "out of memory on this machine"});
    } catch (const std::exception& error) {
        print_error({ErrorCode::run_failed, fmt::format("internal error: {}", error.what()),
                     "this is a mistake in zeroplan: please report it with the scenario"});
    }
    return failed;
}

}  // namespace

int run_command(CLI::App& app, int argc, const char* const* argv, const std::function<int()>& body) {
    occupy_standard_descriptors();
    report_file_size_limits();
    return guarded([&] {
        try {
            app.parse(argc, argv);
        } catch (const CLI::CallForHelp&) {
            const CLI::App& at = innermost(app);
            print(at.help(&at == &app ? "" : app.get_name()));
            return 0;
        } catch (const CLI::CallForAllHelp&) {
            print(app.help("", CLI::AppFormatMode::All));
            return 0;
        } catch (const CLI::CallForVersion& version) {
            print(version.what());
            return 0;
        } catch (const CLI::ParseError& error) {
            print_error(explained(app, error));
            return bad_input;
        }
        refuse_empty_values(app);
        return body();
    });
}

}  // namespace zeroplan::command
