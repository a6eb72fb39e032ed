#pragma once
#include <optional>
#include <string>
#include <vector>

#include "zeroplan/plan.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan {

/// One number of a report that another report may have, too.
struct Figure {
    std::string section;  ///< "job", "memory", "phases", "time", "communication", "training"
    std::string what;     ///< "allocated", "step time": the key that figures of two reports are matched by
    std::string unit;     ///< "B", "s", "1/s", "1"
    double value = 0;
    friend bool operator==(const Figure&, const Figure&) = default;
};

/// Memory of ranks that are the same: categories at the peak and counters.
struct RankFigures {
    std::vector<RankRange> ranks;
    std::vector<Figure> figures;
    friend bool operator==(const RankFigures&, const RankFigures&) = default;
};

/// What of a plan, sim or run report can be compared, whatever its kind.
struct ComparableReport {
    std::string file, kind;
    std::string summary;          ///< model, engine, stage and ranks in words
    std::string verdict;          ///< of a plan or simulation; "" where there is none
    std::vector<Figure> figures;  ///< of the whole job
    std::vector<RankFigures> ranks;
    std::vector<std::pair<std::string, std::string>> scenario;  ///< JSON pointer → value, sorted by pointer
    std::vector<double> losses;                                 ///< of a run, one a step
    std::string final_parameters_sha256;                        ///< "" where there is none
    friend bool operator==(const ComparableReport&, const ComparableReport&) = default;
};

/// Reads the JSON of `plan`, `sim` or `run`. Throws Error{invalid_input} with the pointer for another kind,
/// another schema, a key that the schema promises (CLI.md) and that is missing or of the wrong type, and
/// ranks that are described twice or not at all.
ComparableReport parse_report(std::string_view text, const std::string& file);

/// A figure that both reports have. `ranks` is "" for figures of the whole job.
struct ComparedFigure {
    std::string ranks;
    Figure a;
    double b = 0;
    std::optional<double> relative;  ///< b / a − 1, 0 for rounding; nothing if a is 0 and b isn't
    bool within = true;              ///< |relative| ≤ tolerance
    friend bool operator==(const ComparedFigure&, const ComparedFigure&) = default;
};

/// A figure that one report lacks. `ranks` as in ComparedFigure.
struct OneSidedFigure {
    std::string ranks;
    Figure figure;
    bool in_a = true;
    friend bool operator==(const OneSidedFigure&, const OneSidedFigure&) = default;
};

struct Comparison {
    std::vector<ComparedFigure> figures;  ///< all of them, in the first report's order
    /// Figures that the other report could have, too: ranks of a larger world, an optional key. Differences.
    std::vector<OneSidedFigure> only_in_one;
    /// Figures that a report of the other's kind never has: a run measures no reserved bytes. For
    /// information.
    std::vector<OneSidedFigure> not_comparable;
    /// Keys of the scenario whose values differ, "" where a report lacks the key; for information.
    struct Key {
        std::string pointer, a, b;
        friend bool operator==(const Key&, const Key&) = default;
    };
    std::vector<Key> scenario;
    /// Whether the trained parameters are bitwise equal, where both reports have their digest.
    std::optional<bool> same_parameters;
    /// Whether both say the same of fitting, where both have a verdict.
    std::optional<bool> same_verdict;
    double tolerance = 0;
    /// Every figure is within the tolerance, none is in one report only, and the verdict is the same; with
    /// tolerance 0 also same_parameters.
    bool agrees = true;
    friend bool operator==(const Comparison&, const Comparison&) = default;
};

/// Compares what both have: figures of the job by name, memory on every rank that both have. `tolerance` is
/// the relative difference up to which figures agree; 0 asks for equality, of times but for rounding (1e-9 of
/// the step). Throws Error{invalid_input} if the reports have no figure in common.
Comparison compare(const ComparableReport& a, const ComparableReport& b, double tolerance);

std::string compare_text(const ComparableReport& a, const ComparableReport& b, const Comparison& comparison,
                         const TextStyle& style = {});
/// {"schema", "kind": "compare", "a": {"file", "kind", "verdict"}, "b", "tolerance", "agrees", "compared": n,
/// "differences": [{"ranks", "section", "what", "unit", "a", "b", "relative", "within"}],
/// "only_in_one": [{"ranks", "section", "what", "unit", "a", "b"}], "not_comparable": [...], "scenario":
/// [...]} where the side that lacks a figure is null.
std::string compare_json(const ComparableReport& a, const ComparableReport& b, const Comparison& comparison,
                         int indent = 2);

}  // namespace zeroplan
