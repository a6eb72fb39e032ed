#include <array>
#include <cmath>

#include <fmt/format.h>

#include "printable.hpp"
#include "report/text_page.hpp"
#include "zeroplan/import.hpp"
#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

const char* title(ImportKind kind) {
    switch (kind) {
        case ImportKind::deepspeed_config:
            return "DeepSpeed configuration";
        case ImportKind::accelerate_config:
            return "accelerate configuration";
        case ImportKind::launch_script:
            return "launch script";
        case ImportKind::oom_message:
            return "out-of-memory message";
        case ImportKind::deepspeed_memory:
            return "DeepSpeed's memory lines";
        case ImportKind::topology_matrix:
            return "nvidia-smi topo -m";
        case ImportKind::nccl_topology:
            return "NCCL topology";
        case ImportKind::nccl_graph:
            return "NCCL graphs";
        case ImportKind::nccl_tests:
            return "nccl-tests log";
    }
    return "";
}

/// How a group of findings is headed.
struct Group {
    Finding finding;
    const char* title;
    const char* rest;
    Colour colour;
};
constexpr std::array groups{
    Group{Finding::rejected, "Rejected", " by the program the file is for", Colour::red},
    Group{Finding::missing, "To be told", "", Colour::yellow},
    Group{Finding::warning, "Note", "", Colour::yellow},
    Group{Finding::ignored, "Without effect", "", Colour::none},
    Group{Finding::deprecated, "Deprecated", "", Colour::none},
    Group{Finding::resolved, "Understood as", "", Colour::none}};

void add_findings(TextPage& page, const Import& import, const Group& group) {
    bool headed = false;
    for (const ImportFinding& finding : import.findings) {
        if (finding.finding != group.finding) continue;
        if (!headed) {
            page.line("");
            page.line(std::string(group.title) + group.rest, group.colour);
            headed = true;
        }
        std::string place = finding.line == 0 ? "" : fmt::format("line {}: ", finding.line);
        if (!finding.key.empty()) place += finding.key + ": ";
        page.paragraph("  ", place + finding.message);
        if (!finding.hint.empty()) page.paragraph("    → ", finding.hint);
    }
}

std::string shown(const ImportFigure& figure) {
    constexpr double most_bytes = 0x1p63;
    if (figure.unit == "B" && figure.value < most_bytes)
        return format_bytes(Bytes{static_cast<std::uint64_t>(std::llround(figure.value))});
    if (figure.unit == "B/s") return fixed(figure.value / 1e9, 2) + " GB/s";
    if (figure.unit == "s") return format_seconds(figure.value);
    const std::string number = std::trunc(figure.value) == figure.value && figure.value < 1e15
                                   ? fmt::format("{:.0f}", figure.value)
                                   : fmt::format("{:.4g}", figure.value);
    return figure.unit == "1" ? number : number + " " + figure.unit;
}

void add_figures(TextPage& page, const Import& import) {
    if (import.figures.empty()) return;
    Table table({"", "", ""});
    table.left(2);
    for (const ImportFigure& figure : import.figures) table.row({figure.name, shown(figure), figure.note});
    page.heading("Figures");
    page.table(table);
}

void add_settings(TextPage& page, const Import& import) {
    if (import.scenario.settings.empty()) return;
    Table table({"", "", ""});
    table.left(1).left(2);
    for (const Setting& setting : import.scenario.settings)
        table.row({setting.pointer, setting.json_value, setting.origin});
    // A script isn't a scenario or an engine's configuration: `plan` can't read it.
    page.heading("For a scenario", import.kind == ImportKind::launch_script
                                       ? " (--output writes it, zeroplan plan --scenario takes that)"
                                       : " (zeroplan plan takes the file itself, or what --output writes)");
    page.table(table);
}

}  // namespace

std::string import_text_report(const Import& import, const TextStyle& style) {
    TextPage page(style);
    page.line(fmt::format("{}: {}", import.file, title(import.kind)), Colour::bold);
    for (const Group& group : groups) add_findings(page, import, group);
    add_figures(page, import);
    add_settings(page, import);
    return page.take();
}

}  // namespace zeroplan
