#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zeroplan/collective_cost.hpp"
#include "zeroplan/report.hpp"
#include "zeroplan/scenario.hpp"

namespace zeroplan {

/// How far a measurement can be trusted: A is scored, B is reported beside it, C is not scored.
enum class Tier : std::uint8_t { a, b, c };
std::string_view to_string(Tier tier);

/// What was measured; a prediction is compared with the same counter only.
enum class Counter : std::uint8_t { allocated, active, reserved, device, unspecified, resident, time };
inline constexpr std::size_t counter_count = 7;
std::string_view to_string(Counter counter);

struct Measurement {
    Counter counter = Counter::allocated;
    double value = 0;  ///< bytes or seconds
};

/// Bytes that one rank took.
struct RankBytes {
    std::uint64_t rank = 0;
    double bytes = 0;
};

/// A published run: its scenario as JSON text and what somebody measured.
struct MeasuredCase {
    std::string id, source;
    std::string place;  ///< "file:line", for errors
    std::string scenario_json;
    std::optional<Tier> tier, tier_time;
    std::vector<Measurement> measured;
    std::optional<double> tokens_per_s_per_gpu;  ///< turned into a time if no step time is there
    std::optional<bool> fits;
    std::vector<std::uint64_t> ranks;  ///< ranks the figures are the maximum over; empty: all
    bool last_rank = false;            ///< the figures are the last rank's
    std::vector<RankBytes> by_rank;    ///< of single ranks, of the counter below
    Counter by_rank_counter = Counter::allocated;
    bool rates_only = false;  ///< MFU or FLOP/s are measured, and no time that they could be told from
};

/// A published time of one collective.
struct MeasuredCollective {
    std::string id, source;
    ClusterSpec cluster;
    CollectiveKind kind = CollectiveKind::all_reduce;
    bool all_to_all = false;  ///< not one of CollectiveKind: refused
    std::string algorithm;    ///< forced by the measurement; "" = NCCL's choice
    Bytes bytes;
    double time_s = 0;
    Tier tier = Tier::a;
};

/// One JSON object a line, as SCENARIO.md and docs/scenario.md describe it. Throws Error{invalid_input} with
/// file, line and pointer: for keys that are not described, an id that is missing or stands twice, figures
/// without the tier that says how far to trust them.
std::vector<MeasuredCase> read_measured_cases(std::string_view text, const std::string& file);
std::vector<MeasuredCollective> read_measured_collectives(std::string_view text, const std::string& file);

/// Where a prediction expects the measured value, 9 times of 10.
struct PredictedInterval {
    double low = 0, high = 0;
};

struct ScoreRow {
    std::string id, source;
    Tier tier = Tier::a;
    Counter counter = Counter::allocated;
    double predicted = 0, measured = 0;
    std::optional<Bytes> bytes;  ///< size of a collective
    std::optional<PredictedInterval> interval;
    double error() const { return predicted / measured - 1; }
    bool covered() const { return interval && interval->low <= measured && measured <= interval->high; }
};

/// One rank of a case that tells them one by one: these say how the shape over the ranks is met, and count
/// among nobody's means.
struct RankRow {
    std::uint64_t rank = 0;
    ScoreRow row;
};

struct FitsRow {
    std::string id, source;
    Tier tier = Tier::a;
    bool ran = true;
    Verdict verdict = Verdict::fits;
    bool right() const { return verdict == Verdict::marginal || (verdict == Verdict::fits) == ran; }
};

struct Refusal {
    std::string id, source, why;
    bool time_only = false;  ///< the case's memory was compared; only its time is refused
};

/// Errors of some rows: median and nearest-rank 90th percentile of |error|, mean of the signed error.
struct ErrorSummary {
    std::size_t cases = 0, sources = 0;
    double median_abs_error = 0, p90_abs_error = 0, mean_error = 0;
    std::size_t with_interval = 0, covered = 0;  ///< cases, and those whose measured value lies inside
};

struct ScoreReport {
    std::vector<ScoreRow> rows;
    std::vector<FitsRow> fits;
    std::vector<RankRow> by_rank;
    std::vector<Refusal> refused;
};

/// Plans every case and compares, on all cores. A case that zeroplan refuses is listed, not skipped silently;
/// so is one that measures ranks which its scenario doesn't have.
///
/// progress  called with the share that is done, from one thread at a time
ScoreReport score(std::span<const MeasuredCase> cases, const std::function<void(double)>& progress = {});
ScoreReport score(std::span<const MeasuredCollective> collectives);

/// Of the rows of one source (cases of one source weigh alike).
ErrorSummary summarise(std::span<const ScoreRow> rows);
/// Per source first, then the mean over sources, so that a source of 200 rows weighs as much as one of 2.
ErrorSummary mean_over_sources(std::span<const ScoreRow> rows);
/// Rows of one tier and counter.
std::vector<ScoreRow> select(const ScoreReport& report, Tier tier, Counter counter);

std::string score_json(const ScoreReport& report, int indent = 2);
/// The two error tables (all sources, by source) and what was refused, in Markdown; docs/accuracy.md is one.
std::string score_markdown(const ScoreReport& report);
std::string score_text(const ScoreReport& report, const TextStyle& style = {});

}  // namespace zeroplan
