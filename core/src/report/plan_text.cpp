#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/plan_parts.hpp"
#include "report/size_unit.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan {
namespace {

const RankGroup& worst(const Plan& plan) {
    return plan.rank_groups[plan.memory.worst_group];
}

/// The unit of every table: that of what is allocated, so that small models show figures, too.
SizeUnit table_unit(const Plan& plan) {
    return unit_for(worst(plan).steady.allocated);
}

/// Rows of the peak's table: a name, its bytes in both units and a bar against `full`.
class PeakTable {
public:
    PeakTable(SizeUnit unit, Bytes full, std::size_t bar_width)
        : unit_(unit), full_(full), bar_width_(bar_width) {
        table_.left(3);
    }
    void row(const std::string& what, Bytes bytes) {
        const double share = static_cast<double>(bytes.count()) / static_cast<double>(full_.count());
        table_.row({what, unit_.in_binary(bytes), unit_.in_decimal(bytes), bar(share, bar_width_)});
    }
    void rule() { table_.rule(); }
    const Table& table() const { return table_; }

private:
    SizeUnit unit_;
    Bytes full_;
    std::size_t bar_width_;
    Table table_{{"", unit_.binary, unit_.decimal, ""}};
};

/// Categories of the worst rank group at its peak, then what comes on top of allocated until the device's
/// figure.
void add_peak(TextPage& page, const Plan& plan) {
    const RankGroup& group = worst(plan);
    const Bytes capacity = plan.memory.capacity;
    // Against a capacity a hundred times larger no bar would be seen.
    const bool near_capacity = Bytes{capacity.count() / 100} <= group.peak_device;
    PeakTable table(table_unit(plan), std::max(group.peak_device, near_capacity ? capacity : Bytes{1}),
                    page.width() > 90 ? 30 : 20);
    for (const Category category : all_categories)
        if (group.steady.at_peak[category] > Bytes{})
            table.row(in_words(to_string(category)), group.steady.at_peak[category]);
    table.rule();
    table.row("allocated", group.steady.allocated);
    table.row("+ holes between allocations",
              group.peak_reserved - std::min(group.peak_reserved, group.steady.allocated));
    table.row("= reserved", group.peak_reserved);
    table.row(plan.scenario.cluster.gpu.is_host ? "+ runtime: libraries, stacks"
                                                : "+ runtime: context, NCCL, libraries",
              group.runtime);
    table.row("= device", group.peak_device);
    if (near_capacity) {
        table.rule();
        table.row("capacity", capacity);
    }
    page.heading("Peak of a steady step", fmt::format(", {}", ranks_in_words(group.ranks)));
    if (plan.memory.peak_phase == Phase::steady_step)
        page.paragraph("  during ", fmt::format("\"{}\"", plan.memory.peak_operation));
    else
        page.paragraph("  ",
                       fmt::format("not the highest phase: the verdict is decided in {}, during \"{}\"",
                                   in_words(to_string(plan.memory.peak_phase)), plan.memory.peak_operation));
    page.table(table.table());
    page.line(fmt::format("  device, from {} to {}", format_bytes(plan.memory.low),
                          format_bytes(plan.memory.high)));
}

void add_phases(TextPage& page, const Plan& plan) {
    const RankGroup& group = worst(plan);
    const SizeUnit unit = table_unit(plan);
    const bool host = plan.memory.host_per_node > Bytes{};
    std::vector<std::string> titles{unit.binary, "allocated", "reserved", "device"};
    if (host) titles.push_back("host RAM a node");
    Table table(titles);
    for (const PhaseMemory& phase : group.phases) {
        std::vector<std::string> cells{in_words(to_string(phase.phase)), unit.in_binary(phase.peak_allocated),
                                       unit.in_binary(phase.peak_reserved),
                                       unit.in_binary(phase.peak_reserved + group.runtime)};
        if (host) cells.push_back(unit.in_binary(phase.host_per_node));
        table.row(cells);
    }
    page.heading("Peak of each phase", fmt::format(", {}", ranks_in_words(group.ranks)));
    page.table(table);
}

void add_rank_groups(TextPage& page, const Plan& plan) {
    const SizeUnit unit = table_unit(plan);
    Table table({unit.binary, "between steps", "allocated", "reserved", "runtime", "device"});
    constexpr std::size_t most_rows = 16;
    for (std::size_t g = 0; g < std::min(plan.rank_groups.size(), most_rows); ++g) {
        const RankGroup& group = plan.rank_groups[g];
        table.row({ranks_in_words(group.ranks), unit.in_binary(group.resident),
                   unit.in_binary(group.steady.allocated), unit.in_binary(group.peak_reserved),
                   unit.in_binary(group.runtime), unit.in_binary(group.peak_device)});
    }
    page.heading("Ranks",
                 plan.rank_groups.size() == 1 ? ", all the same" : ", grouped where they are the same");
    page.table(table);
    if (plan.rank_groups.size() > most_rows)
        page.line(
            fmt::format("  … and {} more rank groups; --json has all", plan.rank_groups.size() - most_rows));
}

void add_host(TextPage& page, const Plan& plan) {
    page.heading("Host RAM");
    const bool not_counted =
        std::any_of(plan.warnings.begin(), plan.warnings.end(),
                    [](const Warning& warning) { return warning.code == "host_memory_not_counted"; });
    if (not_counted)
        return page.line(fmt::format("  what is offloaded is not counted; a node has {}",
                                     format_bytes(plan.memory.host_capacity)));
    page.line(plan.memory.host_per_node == Bytes{}
                  ? fmt::format("  nothing of the training is kept there; a node has {}",
                                format_bytes(plan.memory.host_capacity))
                  : fmt::format("  {} of {} a node", format_bytes(plan.memory.host_per_node),
                                format_bytes(plan.memory.host_capacity)));
}

void add_communication(TextPage& page, const Plan& plan) {
    page.heading("Communication of a step");
    if (plan.communication.empty()) return page.line("  none");
    Table table({"", "operations", "sent by a rank", "buffers"});
    for (const auto& [kind, volume] : plan.communication)
        table.row({in_words(kind), format_count(volume.operations), format_bytes(volume.bytes_per_rank),
                   format_bytes(volume.buffer_bytes)});
    const CommunicationVolume total = total_communication(plan);
    if (plan.communication.size() > 1)
        table.rule().row({"all", format_count(total.operations), format_bytes(total.bytes_per_rank),
                          format_bytes(total.buffer_bytes)});
    page.table(table);
}

}  // namespace

std::string plan_text(const Plan& plan, const TextStyle& style, const std::vector<std::string>& defaults) {
    TextPage page(style);
    add_verdict(page, plan);
    add_remedies(page, plan);
    add_scenario(page, plan);
    if (!defaults.empty())
        page.paragraph("defaults  ", fmt::format("{}", fmt::join(defaults, ", ")), Colour::dim);
    add_peak(page, plan);
    add_phases(page, plan);
    add_rank_groups(page, plan);
    add_host(page, plan);
    add_communication(page, plan);
    add_warnings(page, plan);
    add_trust(page, plan);
    return page.take();
}

}  // namespace zeroplan
