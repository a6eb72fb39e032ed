#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/text_page.hpp"
#include "zeroplan/compare.hpp"

namespace zeroplan {
namespace {

std::string shown(const std::string& unit, double value) {
    if (unit == "B") return format_bytes(Bytes{static_cast<std::uint64_t>(std::max(value, 0.0))});
    if (unit == "s") return format_seconds(value);
    const bool whole = std::abs(value) < 1e15 && value == std::floor(value) && value >= 0;
    if (unit == "1" && whole) return format_count(static_cast<std::uint64_t>(value));
    return fmt::format("{:.6g}{}", value, unit == "1" ? "" : " " + unit);
}

std::string difference(const ComparedFigure& figure) {
    if (!figure.relative) return "was 0";
    const double percent = 100 * *figure.relative;
    return std::abs(percent) < 0.01 ? fmt::format("{:+.2g} %", percent) : fmt::format("{:+.2f} %", percent);
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
        page.line(
            fmt::format("disagree: {} of {} figures differ{}", beyond, comparison.figures.size(), limit),
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

}  // namespace

std::string compare_text(const ComparableReport& a, const ComparableReport& b, const Comparison& comparison,
                         const TextStyle& style) {
    TextPage page(style);
    add_verdict(page, comparison);
    page.paragraph("  A  ", fmt::format("{}: {} of {}", a.file, a.kind, a.summary), Colour::dim);
    page.paragraph("  B  ", fmt::format("{}: {} of {}", b.file, b.kind, b.summary), Colour::dim);
    add_figures(page, comparison);
    if (comparison.same_parameters) {
        page.heading("trained parameters",
                     *comparison.same_parameters ? ", bitwise equal" : ", not bitwise equal");
    }
    add_scenario(page, comparison);
    return page.take();
}

}  // namespace zeroplan
