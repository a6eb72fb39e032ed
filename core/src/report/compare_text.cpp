#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/text_page.hpp"
#include "zeroplan/compare.hpp"

namespace zeroplan {
namespace {

std::string in_words(std::string word) {
    std::replace(word.begin(), word.end(), '_', ' ');
    return word;
}

std::string shown(const std::string& unit, double value) {
    if (unit == "B") return format_bytes(Bytes{static_cast<std::uint64_t>(std::max(value, 0.0))});
    if (unit == "s") return format_seconds(value);
    const bool whole = std::abs(value) < 1e15 && value == std::floor(value) && value >= 0;
    if (unit == "1" && whole) return format_count(static_cast<std::uint64_t>(value));
    return fmt::format("{:.6g}{}", value, unit == "1" ? "" : " " + unit);
}

std::string difference(const ComparedFigure& figure) {
    if (!figure.relative) return figure.a.value == 0 ? "was 0" : "was almost 0";
    const double percent = 100 * *figure.relative;
    if (std::abs(percent) >= 1e6) return fmt::format("{:+.3g} %", percent);
    return std::abs(percent) < 0.01 ? fmt::format("{:+.2g} %", percent) : fmt::format("{:+.2f} %", percent);
}

std::string only_in_one(const Comparison& comparison) {
    const std::size_t count = comparison.only_in_one.size();
    if (count == 0) return {};
    return fmt::format(", {} {} in one report only", count, count == 1 ? "is" : "are");
}

void add_verdict(TextPage& page, const Comparison& comparison) {
    const auto count = [&](auto predicate) {
        return std::count_if(comparison.figures.begin(), comparison.figures.end(), predicate);
    };
    const auto differing = count([](const ComparedFigure& f) { return f.relative != 0.0; });
    const auto beyond = count([](const ComparedFigure& f) { return !f.within; });
    const std::string limit =
        comparison.tolerance == 0 ? "" : fmt::format(" by more than {:.4g} %", 100 * comparison.tolerance);
    if (comparison.agrees)
        page.line(differing == 0
                      ? fmt::format("agree: all {} figures are equal", comparison.figures.size())
                      : fmt::format("agree: none of {} figures differs{}", comparison.figures.size(), limit),
                  Colour::green);
    else
        page.line(fmt::format("disagree: {} of {} figures differ{}{}{}", beyond, comparison.figures.size(),
                              limit, only_in_one(comparison),
                              comparison.same_verdict == false ? ", and so does the verdict" : ""),
                  Colour::red);
}

void add_figures(TextPage& page, const Comparison& comparison) {
    std::string section;
    Table table({"", "A", "B", "difference"});
    const auto flush = [&] {
        if (!table.empty()) {
            page.heading(section);
            page.table(table);
        }
        table = Table({"", "A", "B", "difference"});
    };
    for (const ComparedFigure& figure : comparison.figures) {
        const std::string here =
            figure.a.section + (figure.ranks.empty() ? "" : fmt::format(", ranks {}", figure.ranks));
        if (here != section) flush();
        section = here;
        if (figure.relative == 0.0) continue;
        table.row({figure.a.what, shown(figure.a.unit, figure.a.value), shown(figure.a.unit, figure.b),
                   difference(figure) + (figure.within && comparison.tolerance > 0 ? " (within)" : "")});
    }
    flush();
}

std::string heading_of(const OneSidedFigure& one) {
    return one.figure.section + (one.ranks.empty() ? "" : fmt::format(", ranks {}", one.ranks));
}

void add_one_sided(TextPage& page, const Comparison& comparison) {
    if (comparison.only_in_one.empty()) return;
    page.heading("in one report only");
    Table table({"", "A", "B"});
    for (const OneSidedFigure& one : comparison.only_in_one) {
        const std::string value = shown(one.figure.unit, one.figure.value);
        table.row({heading_of(one) + ": " + one.figure.what, one.in_a ? value : "–", one.in_a ? "–" : value});
    }
    page.table(table);
}

/// The figure's name, or its section's where the reports have nothing of it in common.
std::string name_of(const Figure& figure, const Comparison& comparison) {
    const bool shared =
        std::any_of(comparison.figures.begin(), comparison.figures.end(),
                    [&](const ComparedFigure& row) { return row.a.section == figure.section; });
    return shared ? figure.what : figure.section;
}

/// Names suffice: what kinds of reports don't have in common is nobody's finding.
void add_not_comparable(TextPage& page, const ComparableReport& a, const ComparableReport& b,
                        const Comparison& comparison) {
    for (const bool in_a : {true, false}) {
        std::vector<std::string> names;
        for (const OneSidedFigure& one : comparison.not_comparable) {
            std::string name = name_of(one.figure, comparison);
            if (one.in_a == in_a && std::find(names.begin(), names.end(), name) == names.end())
                names.push_back(std::move(name));
        }
        if (names.empty()) continue;
        page.paragraph(
            "  not compared: ", fmt::format("a {} has no {}", (in_a ? b : a).kind, fmt::join(names, "; ")),
            Colour::dim);
    }
}

std::string shortened(const std::string& text) {
    constexpr std::size_t longest = 30;
    if (text.empty()) return "–";
    return text.size() <= longest ? text : text.substr(0, longest - 1) + "…";
}

void add_scenario(TextPage& page, const Comparison& comparison) {
    if (comparison.scenario.empty()) return;
    constexpr std::size_t most_rows = 24;
    Table table({"", "A", "B"});
    for (std::size_t i = 0; i < std::min(comparison.scenario.size(), most_rows); ++i) {
        const Comparison::Key& key = comparison.scenario[i];
        table.row({key.pointer, shortened(key.a), shortened(key.b)});
    }
    page.heading("scenario", ", for information");
    page.table(table);
    if (comparison.scenario.size() > most_rows)
        page.line(
            fmt::format("  … and {} more keys; --json has all", comparison.scenario.size() - most_rows));
}

std::string side_in_words(const ComparableReport& report) {
    return fmt::format("{}: {} of {}{}", report.file, report.kind, report.summary,
                       report.verdict.empty() ? "" : ", " + in_words(report.verdict));
}

}  // namespace

std::string compare_text(const ComparableReport& a, const ComparableReport& b, const Comparison& comparison,
                         const TextStyle& style) {
    TextPage page(style);
    add_verdict(page, comparison);
    page.paragraph("  A  ", side_in_words(a), Colour::dim);
    page.paragraph("  B  ", side_in_words(b), Colour::dim);
    add_figures(page, comparison);
    add_one_sided(page, comparison);
    if (comparison.same_parameters) {
        page.heading("trained parameters",
                     *comparison.same_parameters ? ", bitwise equal" : ", not bitwise equal");
    }
    add_not_comparable(page, a, b, comparison);
    add_scenario(page, comparison);
    return page.take();
}

}  // namespace zeroplan
