#include <fmt/format.h>

#include "report/score_rows.hpp"
#include "report/text_page.hpp"
#include "zeroplan/score.hpp"

namespace zeroplan {
namespace {

void add_row(Table& table, std::vector<std::string> head, const ErrorSummary& summary, bool with_sources) {
    head.push_back(fmt::format("{}", summary.cases));
    if (with_sources) head.push_back(fmt::format("{}", summary.sources));
    head.insert(head.end(), {percent_text(summary.median_abs_error), percent_text(summary.p90_abs_error),
                             signed_percent_text(summary.mean_error), covered_text(summary)});
    table.row(std::move(head));
}

void add_tiers(TextPage& page, const ScoreReport& report) {
    Table table({"tier", "counter", "cases", "sources", "median |error|", "90th percentile", "mean error",
                 "in interval"});
    table.left(1);
    for (const ErrorLine& line : errors_by_counter(report))
        add_row(table, {std::string(to_string(line.tier)), std::string(to_string(line.counter))},
                line.summary, true);
    page.heading("Errors", " predicted / measured - 1, per source first, then the mean over sources");
    page.table(table);
}

void add_sizes(TextPage& page, const ScoreReport& report) {
    const std::vector<ErrorLine> lines = errors_by_size(report);
    if (lines.empty()) return;
    Table table(
        {"collectives", "tier", "counter", "cases", "sources", "median |e|", "p90 |e|", "mean e", "inside"});
    table.left(2);
    for (const ErrorLine& line : lines)
        add_row(table, {line.source, std::string(to_string(line.tier)), std::string(to_string(line.counter))},
                line.summary, true);
    page.heading("By size");
    page.table(table);
}

void add_fits(TextPage& page, const ScoreReport& report) {
    if (report.fits.empty()) return;
    Table table({"tier", "it", "cases", "right", "wrong", "marginal"});
    table.left(1);
    for (const VerdictLine& line : verdicts(report))
        table.row({std::string(to_string(line.tier)), line.ran ? "ran" : "ran out of memory",
                   fmt::format("{}", line.right + line.wrong), fmt::format("{}", line.right),
                   fmt::format("{}", line.wrong), fmt::format("{}", line.marginal)});
    page.heading("Does it fit");
    page.table(table);
}

void add_sources(TextPage& page, const ScoreReport& report) {
    Table table({"source", "tier", "counter", "cases", "median |e|", "p90 |e|", "mean e", "inside"});
    table.left(2);
    for (const ErrorLine& line : errors_by_source(report)) {
        std::string source = line.source;
        if (source.size() > 44) source = source.substr(0, 43) + "…";
        add_row(table, {source, std::string(to_string(line.tier)), std::string(to_string(line.counter))},
                line.summary, false);
    }
    page.heading("By source");
    page.table(table);
}

void add_shapes(TextPage& page, const ScoreReport& report) {
    if (report.by_rank.empty()) return;
    Table table({"case", "tier", "counter", "ranks", "median |e|", "p90 |e|", "mean e", "inside"});
    table.left(2);
    for (const ShapeLine& line : rank_shapes(report))
        add_row(table, {line.id, std::string(to_string(line.tier)), std::string(to_string(line.counter))},
                line.summary, false);
    page.heading("Rank by rank", ": cases that tell each rank's memory; not in the means above");
    page.table(table);
}

void add_refused(TextPage& page, const ScoreReport& report) {
    if (report.refused.empty()) return;
    page.heading("Refused", ": a case, or only its time where its memory is compared above");
    Table table({"cases", "refused", "why"});
    table.left(1).left(2);
    for (const RefusalLine& line : refusals(report))
        table.row({fmt::format("{}", line.cases), line.time_only ? "time" : "case", line.why});
    page.table(table);
}

}  // namespace

std::string score_text(const ScoreReport& report, const TextStyle& style) {
    TextPage page(style);
    const auto times = std::count_if(report.refused.begin(), report.refused.end(),
                                     [](const Refusal& refusal) { return refusal.time_only; });
    const auto cases = static_cast<std::ptrdiff_t>(report.refused.size()) - times;
    page.line(fmt::format("{} figures compared, {} cases refused{}", report.rows.size(), cases,
                          times > 0 ? fmt::format(", and the time of {} more", times) : ""),
              Colour::bold);
    add_tiers(page, report);
    add_sizes(page, report);
    add_fits(page, report);
    add_sources(page, report);
    add_shapes(page, report);
    add_refused(page, report);
    return page.take();
}

}  // namespace zeroplan
