#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "subcommand.hpp"
#include "zeroplan/command/output.hpp"
#include "zeroplan/compare.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan::tool {
namespace {

struct CompareFlags {
    std::string a, b;
    double tolerance = 0;
    command::OutputFlags output;
};

int run_compare(const CompareFlags& flags) {
    if (!std::isfinite(flags.tolerance) || flags.tolerance < 0)
        throw Error(ErrorCode::invalid_input, fmt::format("{} is no relative difference", flags.tolerance),
                    "0.03 stands for 3 %", {"command line", "--tolerance"});
    const ComparableReport a = parse_report(read_text_file(flags.a), flags.a);
    const ComparableReport b = parse_report(read_text_file(flags.b), flags.b);
    const Comparison comparison = compare(a, b, flags.tolerance);
    if (flags.output.json)
        command::print(compare_json(a, b, comparison));
    else if (!flags.output.quiet)
        command::print(compare_text(a, b, comparison, command::terminal_style()));
    return comparison.agrees ? 0 : 1;
}

}  // namespace

void add_compare(CLI::App& app, Action& chosen) {
    const auto flags = std::make_shared<CompareFlags>();
    CLI::App* compare = app.add_subcommand("compare", "Differences of any two reports of plan, sim and run");
    compare->add_option("A", flags->a, "Report, as --json wrote it")->type_name("A.json")->required();
    compare->add_option("B", flags->b, "Report to compare with it")->type_name("B.json")->required();
    compare
        ->add_option("--tolerance", flags->tolerance,
                     "Relative difference up to which figures agree, 0.03 for 3 % (0: equal)")
        ->type_name("X");
    command::add_output_flags(*compare, flags->output);
    compare->footer(
        "Without --tolerance every figure has to be equal, measured times, too.\n"
        "Exit status: 0 they agree, 1 a figure differs by more than the tolerance, is in one report only, or "
        "the "
        "verdict differs, 2 the input is wrong.\n\n"
        "Example: does the run use the memory that was planned, byte for byte?\n"
        "  zeroplan plan --model tutorial-mlp --topology host --gpus 4 --zero 2 --json > plan.json\n"
        "  zeroplan run --model tutorial-mlp --zero 2 --ranks 4 --json > run.json\n"
        "  zeroplan compare plan.json run.json");
    compare->callback([flags, &chosen] { chosen = [flags] { return run_compare(*flags); }; });
}

}  // namespace zeroplan::tool
