#include "zeroplan/compare.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace zeroplan {
namespace {

ComparedFigure compare_figure(std::string ranks, const Figure& a, const Figure& b, double tolerance) {
    ComparedFigure row{std::move(ranks), a, b.value, std::nullopt, false};
    if (a.value == b.value)
        row.relative = 0;
    else if (a.value != 0)
        row.relative = b.value / a.value - 1;
    row.within = row.relative && std::abs(*row.relative) <= tolerance;
    return row;
}

void compare_figures(Comparison& out, const std::string& ranks, const std::vector<Figure>& a,
                     const std::vector<Figure>& b) {
    for (const Figure& figure : a) {
        const auto other = std::find_if(b.begin(), b.end(), [&](const Figure& candidate) {
            return candidate.section == figure.section && candidate.what == figure.what;
        });
        if (other != b.end()) out.figures.push_back(compare_figure(ranks, figure, *other, out.tolerance));
    }
}

std::vector<RankRange> intersection(const std::vector<RankRange>& a, const std::vector<RankRange>& b) {
    std::vector<RankRange> both;
    for (const RankRange& x : a)
        for (const RankRange& y : b) {
            const RankRange common{std::max(x.first, y.first), std::min(x.last, y.last)};
            if (common.first <= common.last) both.push_back(common);
        }
    return both;
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
    compare_figures(out, "", a.figures, b.figures);
    for (const RankFigures& x : a.ranks)
        for (const RankFigures& y : b.ranks)
            if (const auto ranks = intersection(x.ranks, y.ranks); !ranks.empty())
                compare_figures(out, to_string(ranks), x.figures, y.figures);
    if (out.figures.empty())
        throw Error(ErrorCode::invalid_input,
                    fmt::format("{} and {} have no figure in common", a.file, b.file));
    compare_scenarios(out, a, b);
    if (!a.final_parameters_sha256.empty() && !b.final_parameters_sha256.empty())
        out.same_parameters = a.final_parameters_sha256 == b.final_parameters_sha256;
    out.agrees = std::all_of(out.figures.begin(), out.figures.end(),
                             [](const ComparedFigure& figure) { return figure.within; });
    // Bitwise equality is what tolerance 0 asks for; with any other the losses say how far training drifted.
    if (tolerance == 0 && out.same_parameters == false) out.agrees = false;
    return out;
}

}  // namespace zeroplan
