#include <nlohmann/json.hpp>

#include "zeroplan/compare.hpp"

namespace zeroplan {
namespace {

using nlohmann::ordered_json;

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
}

/// Bytes and counts as the integers that they are.
ordered_json figure_value(const std::string& unit, double value) {
    constexpr double exact = 9007199254740992.0;  // 2^53
    const bool whole = unit == "B" && value >= 0 && value <= exact;
    return whole ? ordered_json(static_cast<std::uint64_t>(value)) : ordered_json(value);
}

ordered_json side_to_json(const ComparableReport& report) {
    ordered_json out{{"file", report.file}, {"kind", report.kind}, {"summary", report.summary}};
    if (!report.verdict.empty()) out["verdict"] = report.verdict;
    return out;
}

ordered_json to_json(const std::vector<OneSidedFigure>& figures) {
    ordered_json out = ordered_json::array();
    for (const OneSidedFigure& one : figures) {
        const ordered_json value = figure_value(one.figure.unit, one.figure.value);
        out.push_back({{"ranks", one.ranks},
                       {"section", one.figure.section},
                       {"what", one.figure.what},
                       {"unit", one.figure.unit},
                       {"a", one.in_a ? value : ordered_json(nullptr)},
                       {"b", one.in_a ? ordered_json(nullptr) : value}});
    }
    return out;
}

}  // namespace

std::string compare_json(const ComparableReport& a, const ComparableReport& b, const Comparison& comparison,
                         int indent) {
    ordered_json out;
    out["schema"] = 1;
    out["kind"] = "compare";
    out["a"] = side_to_json(a);
    out["b"] = side_to_json(b);
    out["tolerance"] = comparison.tolerance;
    out["agrees"] = comparison.agrees;
    out["compared"] = comparison.figures.size();
    out["same_parameters"] = or_null(comparison.same_parameters);
    out["differences"] = ordered_json::array();
    for (const ComparedFigure& figure : comparison.figures) {
        if (figure.relative == 0.0) continue;
        out["differences"].push_back({{"ranks", figure.ranks},
                                      {"section", figure.a.section},
                                      {"what", figure.a.what},
                                      {"unit", figure.a.unit},
                                      {"a", figure_value(figure.a.unit, figure.a.value)},
                                      {"b", figure_value(figure.a.unit, figure.b)},
                                      {"relative", or_null(figure.relative)},
                                      {"within", figure.within}});
    }
    out["only_in_one"] = to_json(comparison.only_in_one);
    out["not_comparable"] = to_json(comparison.not_comparable);
    out["scenario"] = ordered_json::array();
    for (const Comparison::Key& key : comparison.scenario)
        out["scenario"].push_back({{"pointer", key.pointer}, {"a", key.a}, {"b", key.b}});
    return out.dump(indent);
}

}  // namespace zeroplan
