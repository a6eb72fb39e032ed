#include <array>
#include <nlohmann/json.hpp>

#include "report/score_rows.hpp"
#include "zeroplan/score.hpp"

namespace zeroplan {
namespace {

using nlohmann::ordered_json;

constexpr std::array<Counter, counter_count> all_counters{
    Counter::allocated,   Counter::active,   Counter::reserved, Counter::device,
    Counter::unspecified, Counter::resident, Counter::time};

ordered_json to_json(const ErrorSummary& summary) {
    ordered_json out{{"cases", summary.cases}, {"sources", summary.sources}};
    const auto figure = [&](double value) {
        return summary.cases == 0 ? ordered_json(nullptr) : ordered_json(value);
    };
    out["median_abs_error"] = figure(summary.median_abs_error);
    out["p90_abs_error"] = figure(summary.p90_abs_error);
    out["mean_error"] = figure(summary.mean_error);
    out["with_interval"] = summary.with_interval;
    out["in_interval"] = summary.covered;
    return out;
}

ordered_json fits_to_json(const ScoreReport& report, Tier tier) {
    std::size_t right = 0, wrong = 0, marginal = 0;
    for (const VerdictLine& line : verdicts(report)) {
        if (line.tier != tier) continue;
        right += line.right;
        wrong += line.wrong;
        marginal += line.marginal;
    }
    return {{"right", right}, {"wrong", wrong}, {"marginal", marginal}};
}

ordered_json tier_to_json(const ScoreReport& report, Tier tier) {
    ordered_json by_counter = ordered_json::object();
    for (const Counter counter : all_counters)
        if (counter != Counter::time)
            by_counter[std::string(to_string(counter))] =
                to_json(mean_over_sources(select(report, tier, counter)));
    return {{"by_counter", by_counter},
            {"time", to_json(mean_over_sources(select(report, tier, Counter::time)))},
            {"fits", fits_to_json(report, tier)}};
}

ordered_json by_source_to_json(const ScoreReport& report) {
    ordered_json out = ordered_json::array();
    for (const ErrorLine& line : errors_by_source(report)) {
        ordered_json entry{
            {"source", line.source}, {"tier", to_string(line.tier)}, {"counter", to_string(line.counter)}};
        entry.update(to_json(line.summary));
        out.push_back(std::move(entry));
    }
    return out;
}

ordered_json by_size_to_json(const ScoreReport& report) {
    ordered_json out = ordered_json::array();
    for (const ErrorLine& line : errors_by_size(report)) {
        ordered_json entry{
            {"size", line.source}, {"tier", to_string(line.tier)}, {"counter", to_string(line.counter)}};
        entry.update(to_json(line.summary));
        out.push_back(std::move(entry));
    }
    return out;
}

ordered_json by_rank_to_json(const ScoreReport& report) {
    ordered_json out = ordered_json::array();
    for (const RankRow& one : report.by_rank) {
        if (one.row.tier == Tier::c) continue;
        out.push_back({{"id", one.row.id},
                       {"tier", to_string(one.row.tier)},
                       {"counter", to_string(one.row.counter)},
                       {"rank", one.rank},
                       {"predicted", one.row.predicted},
                       {"measured", one.row.measured},
                       {"error", one.row.error()}});
    }
    return out;
}

ordered_json cases_to_json(const ScoreReport& report) {
    ordered_json out = ordered_json::array();
    for (const ScoreRow& row : report.rows) {
        if (row.tier == Tier::c) continue;
        ordered_json entry{{"id", row.id},
                           {"tier", to_string(row.tier)},
                           {"counter", to_string(row.counter)},
                           {"predicted", row.predicted},
                           {"measured", row.measured},
                           {"error", row.error()}};
        if (row.interval) {
            entry["low"] = row.interval->low;
            entry["high"] = row.interval->high;
        }
        if (row.bytes) entry["bytes"] = row.bytes->count();
        out.push_back(std::move(entry));
    }
    return out;
}

}  // namespace

std::string score_json(const ScoreReport& report, int indent) {
    ordered_json out{{"schema", 1}, {"kind", "score"}};
    out["tiers"] = {{"A", tier_to_json(report, Tier::a)}, {"B", tier_to_json(report, Tier::b)}};
    out["by_source"] = by_source_to_json(report);
    if (!errors_by_size(report).empty()) out["by_size"] = by_size_to_json(report);
    out["cases"] = cases_to_json(report);
    out["by_rank"] = by_rank_to_json(report);
    out["refused"] = ordered_json::array();
    for (const Refusal& refusal : report.refused)
        out["refused"].push_back(
            {{"id", refusal.id}, {"refused", refusal.time_only ? "time" : "case"}, {"why", refusal.why}});
    return out.dump(indent);
}

}  // namespace zeroplan
