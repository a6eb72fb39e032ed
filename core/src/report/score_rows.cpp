#include "report/score_rows.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

namespace zeroplan {

std::vector<ErrorLine> errors_by_counter(const ScoreReport& report) {
    std::vector<ErrorLine> lines;
    for (const Tier tier : {Tier::a, Tier::b}) {
        for (std::size_t c = 0; c < counter_count; ++c) {
            const auto counter = static_cast<Counter>(c);
            const std::vector<ScoreRow> rows = select(report, tier, counter);
            if (!rows.empty()) lines.push_back({"", tier, counter, mean_over_sources(rows)});
        }
    }
    return lines;
}

std::vector<ErrorLine> errors_by_source(const ScoreReport& report) {
    std::map<std::tuple<std::string, Tier, Counter>, std::vector<ScoreRow>> groups;
    for (const ScoreRow& row : report.rows)
        if (row.tier != Tier::c) groups[{row.source, row.tier, row.counter}].push_back(row);
    std::vector<ErrorLine> lines;
    for (const auto& [key, rows] : groups)
        lines.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), summarise(rows)});
    return lines;
}

std::vector<ErrorLine> errors_by_size(const ScoreReport& report) {
    constexpr Bytes large{1ULL << 20};
    std::vector<ErrorLine> lines;
    for (const Tier tier : {Tier::a, Tier::b})
        for (const bool is_large : {false, true}) {
            std::vector<ScoreRow> rows;
            for (const ScoreRow& row : report.rows)
                if (row.tier == tier && row.bytes && (*row.bytes >= large) == is_large) rows.push_back(row);
            if (!rows.empty())
                lines.push_back({is_large ? "1 MiB and more" : "below 1 MiB", tier, rows.front().counter,
                                 mean_over_sources(rows)});
        }
    return lines;
}

std::vector<ShapeLine> rank_shapes(const ScoreReport& report) {
    std::vector<ShapeLine> lines;
    const auto& ranks = report.by_rank;
    for (std::size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
        const ScoreRow& first = ranks[begin].row;
        std::vector<ScoreRow> rows;
        for (; end < ranks.size() && ranks[end].row.id == first.id; ++end) rows.push_back(ranks[end].row);
        if (first.tier != Tier::c) lines.push_back({first.id, first.tier, first.counter, summarise(rows)});
    }
    return lines;
}

std::vector<VerdictLine> verdicts(const ScoreReport& report) {
    std::vector<VerdictLine> lines;
    for (const Tier tier : {Tier::a, Tier::b}) {
        for (const bool ran : {true, false}) {
            VerdictLine line{.tier = tier, .ran = ran};
            for (const FitsRow& row : report.fits) {
                if (row.tier != tier || row.ran != ran) continue;
                ++(row.right() ? line.right : line.wrong);
                line.marginal += row.verdict == Verdict::marginal;
            }
            if (line.right + line.wrong != 0) lines.push_back(line);
        }
    }
    return lines;
}

std::vector<RefusalLine> refusals(const ScoreReport& report) {
    std::map<std::pair<bool, std::string>, std::size_t> reasons;
    for (const Refusal& refusal : report.refused)
        ++reasons[{refusal.time_only, refusal.why.substr(0, refusal.why.find('\n'))}];
    std::vector<RefusalLine> lines;
    for (const auto& [reason, cases] : reasons) lines.push_back({reason.first, reason.second, cases});
    return lines;
}

std::string percent_text(double fraction) {
    return fmt::format("{:.1f} %", 100 * fraction);
}

std::string signed_percent_text(double fraction) {
    return fmt::format("{:+.1f} %", 100 * fraction);
}

std::string covered_text(const ErrorSummary& summary) {
    if (summary.with_interval == 0) return "-";
    return fmt::format("{} of {}", summary.covered, summary.with_interval);
}

}  // namespace zeroplan
