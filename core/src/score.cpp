#include "zeroplan/score.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <iterator>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "zeroplan/io.hpp"
#include "zeroplan/memory_interval.hpp"
#include "zeroplan/step_timeline.hpp"
#include "zeroplan/words.hpp"

namespace zeroplan {
namespace {

bool contains(const RankGroup& group, std::uint64_t rank) {
    return std::any_of(group.ranks.begin(), group.ranks.end(),
                       [rank](const RankRange& range) { return range.first <= rank && rank <= range.last; });
}

/// The rank groups that the measurement is the maximum over.
std::vector<const RankGroup*> measured_groups(const Plan& plan, const MeasuredCase& measured) {
    std::vector<std::uint64_t> ranks = measured.ranks;
    if (measured.last_rank) ranks.push_back(plan.scenario.world_size() - 1);
    std::vector<const RankGroup*> groups;
    for (const RankGroup& group : plan.rank_groups)
        if (ranks.empty() ||
            std::any_of(ranks.begin(), ranks.end(), [&](std::uint64_t r) { return contains(group, r); }))
            groups.push_back(&group);
    return groups;
}

/// A figure of a rank group and its interval.
struct PredictedBytes {
    Bytes bytes;
    BytesInterval interval;
};

PredictedBytes bytes_of(const Plan& plan, const RankGroup& group, Counter counter) {
    const MemoryIntervals intervals = memory_intervals(group, plan.allocator);
    switch (counter) {
        case Counter::allocated:
            return {group.steady.allocated, intervals.allocated};
        case Counter::active:
            return {group.peak_active, intervals.active};
        case Counter::reserved:
            return {group.peak_reserved, intervals.reserved};
        case Counter::unspecified:  // whatever tool it was read from
            return {group.peak_reserved, {intervals.allocated.low, intervals.device.high}};
        case Counter::device:
            return {group.peak_device, intervals.device};
        case Counter::resident:
            return {group.resident, intervals.resident};
        case Counter::time:
            break;
    }
    return {};
}

ScoreRow bytes_row(const MeasuredCase& measured, Counter counter, const PredictedBytes& predicted,
                   double bytes) {
    const auto as_double = [](Bytes b) { return static_cast<double>(b.count()); };
    return {measured.id,
            measured.source,
            *measured.tier,
            counter,
            as_double(predicted.bytes),
            bytes,
            std::nullopt,
            PredictedInterval{as_double(predicted.interval.low), as_double(predicted.interval.high)}};
}

void check_rank(std::uint64_t rank, const Plan& plan, const MeasuredCase& measured, const char* pointer) {
    const std::uint64_t world = plan.scenario.world_size();
    if (rank >= world)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("rank {} is measured, and the scenario has {} ranks", rank, world),
                    "ranks are counted from 0: is the cluster as large as the measured one?",
                    {measured.place, pointer});
}

void check_ranks(const Plan& plan, const MeasuredCase& measured) {
    for (const std::uint64_t rank : measured.ranks) check_rank(rank, plan, measured, "/measured/ranks");
    for (const RankBytes& one : measured.by_rank) check_rank(one.rank, plan, measured, "/measured/by_rank");
}

PredictedBytes predicted_bytes_of(const Plan& plan, std::uint64_t rank, Counter counter) {
    for (const RankGroup& group : plan.rank_groups)
        if (contains(group, rank)) return bytes_of(plan, group, counter);
    throw std::logic_error("the plan has no group of a rank");
}

PredictedBytes predicted_bytes(const Plan& plan, const MeasuredCase& measured, Counter counter) {
    PredictedBytes most;
    for (const RankGroup* group : measured_groups(plan, measured)) {
        const PredictedBytes one = bytes_of(plan, *group, counter);
        if (one.bytes >= most.bytes) most = one;
    }
    return most;
}

StepTimeline slowest_step(const Plan& plan) {
    std::vector<StepTimeline> steps = closed_form_steps(plan);
    return std::move(*std::max_element(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
        return a.step_time_s < b.step_time_s;
    }));
}

/// Step time that a rate of tokens stands for.
double seconds_of_rate(const Plan& plan, double tokens_per_s_per_gpu) {
    const TrainingConfig& t = plan.scenario.training;
    const double tokens = static_cast<double>(t.data_parallel) * static_cast<double>(t.micro_batch_size) *
                          static_cast<double>(t.gradient_accumulation_steps) *
                          static_cast<double>(t.sequence_length);
    return tokens / (tokens_per_s_per_gpu * static_cast<double>(plan.scenario.world_size()));
}

class Scorer {
public:
    void add(const MeasuredCase& measured) {
        try {
            const Plan plan = make_plan(resolve_scenario({.text = measured.scenario_json}));
            check_ranks(plan, measured);
            add_memory(plan, measured);
            add_time_or_refusal(plan, measured);
        } catch (const Error& error) {
            report_.refused.push_back({measured.id, measured.source, error.what()});
        }
    }
    ScoreReport take() { return std::move(report_); }

private:
    void add_memory(const Plan& plan, const MeasuredCase& measured) {
        if (!measured.tier) return;
        for (const Measurement& m : measured.measured)
            if (m.counter != Counter::time)
                report_.rows.push_back(
                    bytes_row(measured, m.counter, predicted_bytes(plan, measured, m.counter), m.value));
        for (const RankBytes& one : measured.by_rank)
            report_.by_rank.push_back(
                {one.rank,
                 bytes_row(measured, measured.by_rank_counter,
                           predicted_bytes_of(plan, one.rank, measured.by_rank_counter), one.bytes)});
        if (measured.fits)
            report_.fits.push_back(
                {measured.id, measured.source, *measured.tier, *measured.fits, plan.memory.verdict});
    }

    /// A step whose time is not modelled may have its memory compared all the same.
    void add_time_or_refusal(const Plan& plan, const MeasuredCase& measured) {
        try {
            add_time(plan, measured);
        } catch (const Error& error) {
            report_.refused.push_back({measured.id, measured.source, error.what(), has_memory(measured)});
        }
    }

    static bool has_memory(const MeasuredCase& measured) {
        const bool bytes = std::any_of(measured.measured.begin(), measured.measured.end(),
                                       [](const Measurement& m) { return m.counter != Counter::time; });
        return measured.tier.has_value() && (bytes || measured.fits.has_value() || !measured.by_rank.empty());
    }

    void add_time(const Plan& plan, const MeasuredCase& measured) {
        if (!measured.tier_time) return;
        if (measured.rates_only)
            throw Error(ErrorCode::not_supported,
                        "only MFU or FLOP/s are measured, which every source counts its own way",
                        "a step time or tokens/s can be compared");
        std::optional<double> seconds;
        for (const Measurement& m : measured.measured)
            if (m.counter == Counter::time) seconds = m.value;
        if (!seconds && measured.tokens_per_s_per_gpu)
            seconds = seconds_of_rate(plan, *measured.tokens_per_s_per_gpu);
        if (!seconds) return;
        const StepTimeline step = slowest_step(plan);
        report_.rows.push_back({measured.id, measured.source, *measured.tier_time, Counter::time,
                                step.step_time_s, *seconds, std::nullopt,
                                PredictedInterval{step.low_s, step.high_s}});
    }

    ScoreReport report_;
};

std::optional<CollectiveAlgorithm> forced_algorithm(const MeasuredCollective& point) {
    if (point.algorithm.empty()) return std::nullopt;
    if (const auto known = from_word<CollectiveAlgorithm>(point.algorithm)) return known;
    throw Error(ErrorCode::not_supported,
                "a forced algorithm ('" + point.algorithm + "') can't be asked for in this version",
                fmt::format("one of: {}; without \"algorithm\" it is NCCL's choice",
                            word_list<CollectiveAlgorithm>()),
                {"", "/algorithm"});
}

template <typename T>
void append(std::vector<T>& to, std::vector<T>&& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// The reports of single cases as one, in the order of the cases.
ScoreReport joined(std::vector<ScoreReport> reports) {
    ScoreReport all;
    for (ScoreReport& report : reports) {
        append(all.rows, std::move(report.rows));
        append(all.fits, std::move(report.fits));
        append(all.by_rank, std::move(report.by_rank));
        append(all.refused, std::move(report.refused));
    }
    return all;
}

GroupPlacement whole_cluster(const ClusterSpec& cluster) {
    return group_placement(GroupKind::world, 1, cluster);
}

}  // namespace

std::string_view to_string(Tier tier) {
    return tier == Tier::a ? "A" : tier == Tier::b ? "B" : "C";
}

std::string_view to_string(Counter counter) {
    switch (counter) {
        case Counter::allocated:
            return "allocated";
        case Counter::active:
            return "active";
        case Counter::reserved:
            return "reserved";
        case Counter::device:
            return "device";
        case Counter::unspecified:
            return "unspecified";
        case Counter::resident:
            return "resident";
        case Counter::time:
            return "time";
    }
    return "?";
}

ScoreReport score(std::span<const MeasuredCase> cases, const std::function<void(double)>& progress) {
    std::vector<ScoreReport> reports(cases.size());
    std::atomic<std::size_t> next = 0, done = 0;
    std::mutex reporting;
    const auto work = [&] {
        for (std::size_t i = next++; i < cases.size(); i = next++) {
            Scorer scorer;
            scorer.add(cases[i]);
            reports[i] = scorer.take();
            const double share = static_cast<double>(++done) / static_cast<double>(cases.size());
            if (!progress) continue;
            const std::lock_guard lock(reporting);
            progress(share);
        }
    };
    // A future hands on what its thread throws, and waits for the thread when it goes.
    std::vector<std::future<void>> others;
    for (unsigned t = 1; t < std::thread::hardware_concurrency(); ++t)
        others.push_back(std::async(std::launch::async, work));
    work();
    for (std::future<void>& other : others) other.get();
    return joined(std::move(reports));
}

ScoreReport score(std::span<const MeasuredCollective> collectives) {
    ScoreReport report;
    for (const MeasuredCollective& c : collectives) {
        try {
            const CollectiveKind kind = c.all_to_all ? CollectiveKind::all_to_all : c.kind;
            const double seconds = collective_cost(kind, c.bytes, whole_cluster(c.cluster), c.cluster,
                                                   {forced_algorithm(c), std::nullopt})
                                       .seconds();
            report.rows.push_back(
                {c.id, c.source, c.tier, Counter::time, seconds, c.time_s, c.bytes, std::nullopt});
        } catch (const Error& error) {
            report.refused.push_back({c.id, c.source, error.what()});
        }
    }
    return report;
}

ErrorSummary summarise(std::span<const ScoreRow> rows) {
    if (rows.empty()) return {};
    std::vector<double> errors;
    double sum = 0;
    for (const ScoreRow& row : rows) {
        errors.push_back(std::abs(row.error()));
        sum += row.error();
    }
    std::sort(errors.begin(), errors.end());
    const std::size_t n = errors.size();
    const double median = n % 2 == 1 ? errors[n / 2] : (errors[n / 2 - 1] + errors[n / 2]) / 2;
    const auto nearest_rank = static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(n)));
    const auto count = [&rows](auto of) {
        return static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), of));
    };
    return {n,
            1,
            median,
            errors[nearest_rank - 1],
            sum / static_cast<double>(n),
            count([](const ScoreRow& row) { return row.interval.has_value(); }),
            count([](const ScoreRow& row) { return row.covered(); })};
}

ErrorSummary mean_over_sources(std::span<const ScoreRow> rows) {
    std::map<std::string, std::vector<ScoreRow>> by_source;
    for (const ScoreRow& row : rows) by_source[row.source].push_back(row);
    ErrorSummary mean;
    for (const auto& [source, source_rows] : by_source) {
        const ErrorSummary one = summarise(source_rows);
        mean.cases += one.cases;
        mean.with_interval += one.with_interval;
        mean.covered += one.covered;
        ++mean.sources;
        mean.median_abs_error += one.median_abs_error;
        mean.p90_abs_error += one.p90_abs_error;
        mean.mean_error += one.mean_error;
    }
    if (mean.sources == 0) return mean;
    const auto n = static_cast<double>(mean.sources);
    mean.median_abs_error /= n;
    mean.p90_abs_error /= n;
    mean.mean_error /= n;
    return mean;
}

std::vector<ScoreRow> select(const ScoreReport& report, Tier tier, Counter counter) {
    std::vector<ScoreRow> rows;
    std::copy_if(report.rows.begin(), report.rows.end(), std::back_inserter(rows),
                 [&](const ScoreRow& row) { return row.tier == tier && row.counter == counter; });
    return rows;
}

}  // namespace zeroplan
