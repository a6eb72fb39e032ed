#include <memory>

#include "subcommand.hpp"
#include "zeroplan/command/output.hpp"
#include "zeroplan/command/progress_line.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/score.hpp"

namespace zeroplan::tool {
namespace {

struct ScoreFlags {
    std::string cases, collectives;
    bool markdown = false;
    command::OutputFlags output;
};

ScoreReport run(const ScoreFlags& flags) {
    if (flags.cases.empty() == flags.collectives.empty())
        throw Error(ErrorCode::invalid_input, "score needs either CASES.jsonl or --collectives FILE",
                    "one JSON object a line: a scenario and what was measured", {"command line", ""});
    command::ProgressLine progress("predicting", !flags.output.quiet && !flags.output.json);
    if (!flags.cases.empty()) {
        ScoreReport report = score(read_measured_cases(read_text_file(flags.cases), flags.cases),
                                   [&progress](double share) { progress.show(share); });
        progress.clear();
        return report;
    }
    return score(read_measured_collectives(read_text_file(flags.collectives), flags.collectives));
}

int run_score(const ScoreFlags& flags) {
    const ScoreReport report = run(flags);
    if (flags.output.json)
        command::print(score_json(report));
    else if (flags.markdown)
        command::print(score_markdown(report));
    else if (!flags.output.quiet)
        command::print(score_text(report, command::terminal_style()));
    return 0;
}

}  // namespace

void add_score(CLI::App& app, Action& chosen) {
    const auto flags = std::make_shared<ScoreFlags>();
    CLI::App* score = app.add_subcommand("score", "Predicts measured runs and reports the errors");
    score->add_option("CASES", flags->cases, "Measured cases, one JSON object a line")
        ->type_name("CASES.jsonl");
    score->add_option("--collectives", flags->collectives, "Measured collectives instead, one a line")
        ->type_name("FILE");
    score->add_flag("--markdown", flags->markdown, "Write the tables as Markdown");
    command::add_output_flags(*score, flags->output);
    score->footer(
        "Errors are predicted / measured - 1, per source first, then the mean over sources; tiers A and B "
        "apart, C not "
        "at all.\n\n"
        "Example: how far are the planner's figures from the runs in my log?\n"
        "  zeroplan score my-runs.jsonl");
    score->callback([flags, &chosen] { chosen = [flags] { return run_score(*flags); }; });
}

}  // namespace zeroplan::tool
