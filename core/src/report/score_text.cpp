#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/text_page.hpp"
#include "zeroplan/score.hpp"

namespace zeroplan {
namespace {

std::string percent(double fraction) {
    return fmt::format("{:.1f} %", 100 * fraction);
}
std::string signed_percent(double fraction) {
    return fmt::format("{:+.1f} %", 100 * fraction);
}

void add_row(Table& table, std::vector<std::string> head, const ErrorSummary& summary, bool with_sources) {
    head.push_back(fmt::format("{}", summary.cases));
    if (with_sources) head.push_back(fmt::format("{}", summary.sources));
    head.insert(head.end(), {percent(summary.median_abs_error), percent(summary.p90_abs_error),
                             signed_percent(summary.mean_error)});
    table.row(std::move(head));
}

void add_tiers(TextPage& page, const ScoreReport& report) {
    Table table({"tier", "counter", "cases", "sources", "median |error|", "90th percentile", "mean error"});
    table.left(1);
    for (const Tier tier : {Tier::a, Tier::b}) {
        for (std::size_t c = 0; c < counter_count; ++c) {
            const auto counter = static_cast<Counter>(c);
            const std::vector<ScoreRow> rows = select(report, tier, counter);
            if (!rows.empty())
                add_row(table, {std::string(to_string(tier)), std::string(to_string(counter))},
                        mean_over_sources(rows), true);
        }
    }
    page.heading("Errors", " predicted / measured - 1, per source first, then the mean over sources");
    page.table(table);
}

void add_fits(TextPage& page, const ScoreReport& report) {
    if (report.fits.empty()) return;
    Table table({"tier", "it", "cases", "right", "wrong", "marginal"});
    table.left(1);
    for (const Tier tier : {Tier::a, Tier::b}) {
        for (const bool ran : {true, false}) {
            std::size_t right = 0, wrong = 0, marginal = 0;
            for (const FitsRow& row : report.fits) {
                if (row.tier != tier || row.ran != ran) continue;
                ++(row.right() ? right : wrong);
                marginal += row.verdict == Verdict::marginal;
            }
            if (right + wrong == 0) continue;
            table.row({std::string(to_string(tier)), ran ? "ran" : "ran out of memory",
                       fmt::format("{}", right + wrong), fmt::format("{}", right), fmt::format("{}", wrong),
                       fmt::format("{}", marginal)});
        }
    }
    page.heading("Does it fit");
    page.table(table);
}

void add_sources(TextPage& page, const ScoreReport& report) {
    std::map<std::tuple<std::string, Tier, Counter>, std::vector<ScoreRow>> groups;
    for (const ScoreRow& row : report.rows)
        if (row.tier != Tier::c) groups[{row.source, row.tier, row.counter}].push_back(row);
    Table table({"source", "tier", "counter", "cases", "median |e|", "p90 |e|", "mean e"});
    table.left(2);
    for (const auto& [key, rows] : groups) {
        std::string source = std::get<0>(key);
        if (source.size() > 44) source = source.substr(0, 43) + "…";
        add_row(table,
                {source, std::string(to_string(std::get<1>(key))), std::string(to_string(std::get<2>(key)))},
                summarise(rows), false);
    }
    page.heading("By source");
    page.table(table);
}

void add_refused(TextPage& page, const ScoreReport& report) {
    if (report.refused.empty()) return;
    std::map<std::pair<bool, std::string>, std::size_t> reasons;
    for (const Refusal& refusal : report.refused)
        ++reasons[{refusal.time_only, refusal.why.substr(0, refusal.why.find('\n'))}];
    page.heading("Refused", ": a case, or only its time where its memory is compared above");
    Table table({"cases", "refused", "why"});
    table.left(1).left(2);
    for (const auto& [reason, count] : reasons)
        table.row({fmt::format("{}", count), reason.first ? "time" : "case", reason.second});
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
    add_fits(page, report);
    add_sources(page, report);
    add_refused(page, report);
    return page.take();
}

}  // namespace zeroplan
