#include "zeroplan/compare.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "zeroplan/category.hpp"

namespace zeroplan {
namespace {

/// Times and rates come from sums whose order differs from version to version: less than this share of the
/// step is rounding.
constexpr double rounding_share = 1e-9;

/// Whether two times or rates differ by rounding only. Bytes, counts and losses are exact.
bool differs_by_rounding(const Figure& a, const Figure& b, double step_s) {
    if (a.section != "time") return false;
    const double scale = std::max(std::abs(a.value), a.unit == "s" ? step_s : 0.0);
    return std::abs(b.value - a.value) <= rounding_share * scale;
}

double step_time(const std::vector<Figure>& figures) {
    for (const Figure& figure : figures)
        if (figure.section == "time" && figure.what == "step time") return figure.value;
    return 0;
}

ComparedFigure compare_figure(std::string ranks, const Figure& a, const Figure& b, double tolerance,
                              double step_s) {
    ComparedFigure row{std::move(ranks), a, b.value, std::nullopt, false};
    if (a.value == b.value || differs_by_rounding(a, b, step_s))
        row.relative = 0;
    else if (const double relative = b.value / a.value - 1; std::isfinite(relative))
        row.relative = relative;
    row.within = row.relative && std::abs(*row.relative) <= tolerance;
    return row;
}

const Figure* find(const std::vector<Figure>& figures, const Figure& wanted) {
    const auto found = std::find_if(figures.begin(), figures.end(), [&](const Figure& candidate) {
        return candidate.section == wanted.section && candidate.what == wanted.what;
    });
    return found == figures.end() ? nullptr : &*found;
}

bool is_measured_by_a_run(const Figure& memory) {
    for (const std::string_view what : {"allocated", "between steps", "device, measured"})
        if (memory.what == what) return true;
    return std::any_of(all_categories.begin(), all_categories.end(), [&](Category category) {
        std::string what(to_string(category));
        std::replace(what.begin(), what.end(), '_', ' ');
        return memory.what == what;
    });
}

/// Whether a report of this kind may have the figure (CLI.md), so that to lack it is a difference.
bool may_have(const std::string& kind, const Figure& figure) {
    if (figure.section == "job") return true;
    if (figure.section == "training") return kind == "run";
    if (figure.section == "time") return kind == "sim" || (kind == "run" && figure.what == "step time");
    if (kind == "run") return figure.section == "memory" && is_measured_by_a_run(figure);
    return figure.what != "device, measured";
}

class FigureComparer {
public:
    FigureComparer(Comparison& out, const ComparableReport& a, const ComparableReport& b)
        : out_(out), a_(a), b_(b), step_s_(step_time(a.figures)) {}

    void compare(const std::string& ranks, const std::vector<Figure>& a, const std::vector<Figure>& b) {
        for (const Figure& figure : a) {
            if (const Figure* other = find(b, figure))
                out_.figures.push_back(compare_figure(ranks, figure, *other, out_.tolerance, step_s_));
            else
                note({ranks, figure, true});
        }
        for (const Figure& figure : b)
            if (find(a, figure) == nullptr) note({ranks, figure, false});
    }
    /// Ranks that the other report doesn't have.
    void note_all(const std::vector<RankRange>& ranks, const std::vector<Figure>& figures, bool in_a) {
        if (ranks.empty()) return;
        for (const Figure& figure : figures) note({to_string(ranks), figure, in_a});
    }

private:
    void note(OneSidedFigure one) {
        // Reports of one kind have the same figures, or one of them lacks something.
        const bool expected = a_.kind == b_.kind || may_have(one.in_a ? b_.kind : a_.kind, one.figure);
        (expected ? out_.only_in_one : out_.not_comparable).push_back(std::move(one));
    }

    Comparison& out_;
    const ComparableReport &a_, &b_;
    double step_s_;
};

std::vector<RankRange> intersection(const std::vector<RankRange>& a, const std::vector<RankRange>& b) {
    std::vector<RankRange> both;
    for (const RankRange& x : a)
        for (const RankRange& y : b) {
            const RankRange common{std::max(x.first, y.first), std::min(x.last, y.last)};
            if (common.first <= common.last) both.push_back(common);
        }
    return both;
}

/// The ranks of `ranges` that no group of `groups` has.
std::vector<RankRange> ranks_without(const std::vector<RankRange>& ranges,
                                     const std::vector<RankFigures>& groups) {
    std::vector<RankRange> rest = ranges;
    for (const RankFigures& group : groups)
        for (const RankRange& taken : group.ranks) {
            std::vector<RankRange> left;
            for (const RankRange& range : rest) {
                if (taken.last < range.first || range.last < taken.first) {
                    left.push_back(range);
                    continue;
                }
                if (range.first < taken.first) left.push_back({range.first, taken.first - 1});
                if (taken.last < range.last) left.push_back({taken.last + 1, range.last});
            }
            rest = std::move(left);
        }
    return rest;
}

void compare_ranks(FigureComparer& comparer, const ComparableReport& a, const ComparableReport& b) {
    for (const RankFigures& x : a.ranks)
        for (const RankFigures& y : b.ranks)
            if (const auto ranks = intersection(x.ranks, y.ranks); !ranks.empty())
                comparer.compare(to_string(ranks), x.figures, y.figures);
    for (const RankFigures& x : a.ranks) comparer.note_all(ranks_without(x.ranks, b.ranks), x.figures, true);
    for (const RankFigures& y : b.ranks) comparer.note_all(ranks_without(y.ranks, a.ranks), y.figures, false);
}

void compare_scenarios(Comparison& out, const ComparableReport& a, const ComparableReport& b) {
    auto x = a.scenario.begin();
    auto y = b.scenario.begin();
    while (x != a.scenario.end() || y != b.scenario.end()) {
        if (y == b.scenario.end() || (x != a.scenario.end() && x->first < y->first)) {
            out.scenario.push_back({x->first, x->second, ""});
            ++x;
        } else if (x == a.scenario.end() || y->first < x->first) {
            out.scenario.push_back({y->first, "", y->second});
            ++y;
        } else {
            if (x->second != y->second) out.scenario.push_back({x->first, x->second, y->second});
            ++x;
            ++y;
        }
    }
}

}  // namespace

Comparison compare(const ComparableReport& a, const ComparableReport& b, double tolerance) {
    Comparison out;
    out.tolerance = tolerance;
    FigureComparer comparer(out, a, b);
    comparer.compare("", a.figures, b.figures);
    compare_ranks(comparer, a, b);
    if (out.figures.empty())
        throw Error(ErrorCode::invalid_input,
                    fmt::format("{} and {} have no figure in common", a.file, b.file));
    compare_scenarios(out, a, b);
    if (!a.final_parameters_sha256.empty() && !b.final_parameters_sha256.empty())
        out.same_parameters = a.final_parameters_sha256 == b.final_parameters_sha256;
    if (!a.verdict.empty() && !b.verdict.empty()) out.same_verdict = a.verdict == b.verdict;
    out.agrees = out.only_in_one.empty() && out.same_verdict != false &&
                 std::all_of(out.figures.begin(), out.figures.end(),
                             [](const ComparedFigure& figure) { return figure.within; });
    // Bitwise equality is what tolerance 0 asks for; with any other the losses say how far training drifted.
    if (tolerance == 0 && out.same_parameters == false) out.agrees = false;
    return out;
}

}  // namespace zeroplan
