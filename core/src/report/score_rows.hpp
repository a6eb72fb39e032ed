#pragma once
#include <string>
#include <vector>

#include "zeroplan/score.hpp"

namespace zeroplan {

/// One line of an error table, figures as people read them.
struct ErrorLine {
    std::string source;  ///< empty: the mean over sources
    Tier tier = Tier::a;
    Counter counter = Counter::allocated;
    ErrorSummary summary;
};

/// Tiers A and B, counter by counter, the mean over sources.
std::vector<ErrorLine> errors_by_counter(const ScoreReport& report);
/// Tiers A and B, source by source, counter by counter.
std::vector<ErrorLine> errors_by_source(const ScoreReport& report);
/// Of collectives, means over sources: latency decides below 1 MiB, bandwidth above; `source` says which.
std::vector<ErrorLine> errors_by_size(const ScoreReport& report);

/// A case that tells its ranks one by one.
struct ShapeLine {
    std::string id;
    Tier tier = Tier::a;
    Counter counter = Counter::allocated;
    ErrorSummary summary;  ///< over its ranks, which are the summary's cases
};
/// Tiers A and B, in the order of the cases.
std::vector<ShapeLine> rank_shapes(const ScoreReport& report);

/// How often the verdict was right on runs that ran, or on runs that ended out of memory.
struct VerdictLine {
    Tier tier = Tier::a;
    bool ran = true;
    std::size_t right = 0, wrong = 0, marginal = 0;  ///< the marginal ones are counted as right too
};
std::vector<VerdictLine> verdicts(const ScoreReport& report);

/// Cases refused for one reason.
struct RefusalLine {
    bool time_only = false;  ///< the memory was compared
    std::string why;
    std::size_t cases = 0;
};
std::vector<RefusalLine> refusals(const ScoreReport& report);

/// "3.4 %", "-3.4 %" with its sign
std::string percent_text(double fraction);
std::string signed_percent_text(double fraction);
/// "31 of 34", or "-" where predictions have no interval
std::string covered_text(const ErrorSummary& summary);

}  // namespace zeroplan
