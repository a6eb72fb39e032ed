#include <fmt/format.h>

#include "printable.hpp"
#include "report/score_rows.hpp"

namespace zeroplan {
namespace {

/// Text of a case file, which must not end a cell, a row or the table.
std::string cell(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) {
        if (c == '|') out += '\\';
        out += c;
    }
    return out;
}

/// Heading of an error table: `first` are the columns of its own, before the errors.
std::string error_heading(const char* first, const char* alignment) {
    return fmt::format(
        "| {} | median \\|error\\| | 90th percentile | mean error | in interval |\n"
        "|{}|---:|---:|---:|---:|\n",
        first, alignment);
}

std::string counter_text(const ErrorLine& line) {
    return fmt::format("| {} | {} | {} |", to_string(line.tier), to_string(line.counter), line.summary.cases);
}

std::string error_text(const ErrorSummary& summary) {
    return fmt::format(" {} | {} | {} | {} |\n", percent_text(summary.median_abs_error),
                       percent_text(summary.p90_abs_error), signed_percent_text(summary.mean_error),
                       covered_text(summary));
}

std::string counter_table(const ScoreReport& report) {
    std::string out = error_heading("tier | counter | cases | sources", "---|---|---:|---:");
    for (const ErrorLine& line : errors_by_counter(report))
        out += counter_text(line) + fmt::format(" {} |", line.summary.sources) + error_text(line.summary);
    return out;
}

std::string size_table(const ScoreReport& report) {
    std::string out =
        error_heading("collectives | tier | counter | cases | sources", "---|---|---|---:|---:");
    for (const ErrorLine& line : errors_by_size(report))
        out += fmt::format("| {} ", line.source) + counter_text(line) +
               fmt::format(" {} |", line.summary.sources) + error_text(line.summary);
    return out;
}

std::string source_table(const ScoreReport& report) {
    std::string out = error_heading("source | tier | counter | cases", "---|---|---|---:");
    for (const ErrorLine& line : errors_by_source(report))
        out += fmt::format("| {} ", cell(line.source)) + counter_text(line) + error_text(line.summary);
    return out;
}

std::string shape_table(const ScoreReport& report) {
    std::string out = error_heading("case | tier | counter | ranks", "---|---|---|---:");
    for (const ShapeLine& line : rank_shapes(report))
        out += fmt::format("| {} | {} | {} | {} |", cell(line.id), to_string(line.tier),
                           to_string(line.counter), line.summary.cases) +
               error_text(line.summary);
    return out;
}

std::string verdict_table(const ScoreReport& report) {
    std::string out =
        "| tier | the run | right | wrong | of the right ones, marginal |\n|---|---|---:|---:|---:|\n";
    for (const VerdictLine& line : verdicts(report))
        out += fmt::format("| {} | {} | {} | {} | {} |\n", to_string(line.tier),
                           line.ran ? "ran" : "ran out of memory", line.right, line.wrong, line.marginal);
    return out;
}

std::string refusal_table(const ScoreReport& report) {
    std::string out = "| cases | refused | why |\n|---:|---|---|\n";
    for (const RefusalLine& line : refusals(report))
        out +=
            fmt::format("| {} | {} | {} |\n", line.cases, line.time_only ? "time" : "case", cell(line.why));
    return out;
}

}  // namespace

std::string score_markdown(const ScoreReport& report) {
    std::string out = "## Mean over sources\n" + counter_table(report);
    if (!errors_by_size(report).empty()) out += "\n## By size\n" + size_table(report);
    out += "\n## By source\n" + source_table(report);
    if (!report.by_rank.empty()) out += "\n## Rank by rank\n" + shape_table(report);
    if (!report.fits.empty()) out += "\n## Does it fit\n" + verdict_table(report);
    if (!report.refused.empty()) out += "\n## Refused\n" + refusal_table(report);
    return out;
}

}  // namespace zeroplan
