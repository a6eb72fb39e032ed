#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "report/loss_curve.hpp"
#include "report/plan_parts.hpp"
#include "report/size_unit.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan {
namespace {

/// Ranks that a plan puts together and that measured the same.
struct MeasuredGroup {
    std::vector<RankRange> ranks;
    const RankGroup* planned = nullptr;
    const RankMeasurement* measured = nullptr;
};

std::vector<MeasuredGroup> group_ranks(const Plan& plan, const RunReport& report) {
    std::vector<MeasuredGroup> groups;
    for (const RankMeasurement& rank : report.ranks) {
        const RankGroup& planned = group_of(plan, rank.rank);
        const auto same = std::find_if(groups.begin(), groups.end(), [&](const MeasuredGroup& group) {
            return group.planned == &planned && group.measured->at_peak == rank.at_peak &&
                   group.measured->peak_allocated == rank.peak_allocated;
        });
        if (same == groups.end())
            groups.push_back({{{rank.rank, rank.rank}}, &planned, &rank});
        else if (same->ranks.back().last + 1 == rank.rank)
            same->ranks.back().last = rank.rank;
        else
            same->ranks.push_back({rank.rank, rank.rank});
    }
    return groups;
}

std::string difference(Bytes planned, Bytes measured) {
    if (planned == measured) return "equal";
    const bool more = measured > planned;
    const Bytes by = more ? measured - planned : planned - measured;
    return fmt::format("{}{}", more ? "+" : "−", format_exact(by));
}

void add_summary(TextPage& page, const RunReport& report) {
    std::string text =
        fmt::format("Training completed successfully: {} steps on {} rank{} ({})", report.losses.size(),
                    report.world_size, report.world_size == 1 ? "" : "s", report.backend);
    if (!report.losses.empty())
        text += fmt::format(", loss {:.6g} → {:.6g}", report.losses.front(), report.losses.back());
    page.line(text, Colour::green);
}

/// Mean of every epoch, a last one that was ended early included: batches differ more than epochs do.
std::vector<double> epoch_means(const RunReport& report) {
    std::vector<double> means;
    const std::size_t steps = report.steps_per_epoch, all = report.losses.size();
    for (std::size_t begin = 0; steps > 0 && begin < all; begin += steps) {
        const auto first = report.losses.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto count = static_cast<std::ptrdiff_t>(std::min(steps, all - begin));
        means.push_back(std::accumulate(first, first + count, 0.0) / static_cast<double>(count));
    }
    return means;
}

void add_losses(TextPage& page, const RunReport& report) {
    const std::size_t width = std::min<std::size_t>(page.width(), 80);
    const std::vector<double> epochs = epoch_means(report);
    const bool by_epoch = epochs.size() > 1;
    const auto curve = loss_curve(by_epoch ? epochs : report.losses, width);
    if (curve.empty()) return;
    page.heading("Loss", by_epoch ? fmt::format(", mean of epochs 1 to {}, {} steps each", epochs.size(),
                                                report.steps_per_epoch)
                                  : fmt::format(", steps 1 to {}, mean over all ranks' samples",
                                                report.losses.size()));
    for (const std::string& line : curve) page.line(line);
    if (by_epoch)
        page.line(
            fmt::format("  {:.6g} in the first epoch, {:.6g} in the last", epochs.front(), epochs.back()));
}

void add_agreement(TextPage& page, const Plan& plan, const RunReport& report) {
    const auto rows = agreement(plan, report);
    const auto wrong = std::count_if(rows.begin(), rows.end(),
                                     [](const Agreement& row) { return row.planned != row.measured; });
    page.heading("Allocated at the peak of a steady step",
                 wrong == 0
                     ? ", planned = measured in every category on every rank"
                     : fmt::format(", planned and measured differ in {} of {} figures", wrong, rows.size()));
    for (const MeasuredGroup& group : group_ranks(plan, report)) {
        Table table({ranks_in_words(group.ranks), "planned", "measured", "difference"});
        const auto row = [&](const std::string& what, Bytes planned, Bytes measured) {
            table.row({what, format_exact(planned), format_exact(measured), difference(planned, measured)});
        };
        for (const Category category : all_categories) {
            const Bytes planned = group.planned->steady.at_peak[category];
            const Bytes measured = group.measured->at_peak[category];
            if (planned > Bytes{} || measured > Bytes{})
                row(in_words(to_string(category)), planned, measured);
        }
        table.rule();
        row("allocated", group.planned->steady.allocated, group.measured->peak_allocated);
        page.table(table);
    }
}

/// Beyond the arena a process has stacks, libraries and allocator pages of its own: this much is no
/// disagreement.
bool within_expectation(const RankMeasurement& rank) {
    const Bytes planned = rank.process_peak_planned, measured = rank.process_peak;
    const Bytes by = measured > planned ? measured - planned : planned - measured;
    return by <= Bytes{8ULL << 20} || 100 * by <= 3 * planned;
}

std::string deviation(Bytes planned, Bytes measured) {
    const Bytes by = measured > planned ? measured - planned : planned - measured;
    const char* sign = measured >= planned ? "+" : "−";
    if (planned == Bytes{}) return sign + format_gib(by);
    return fmt::format("{}{}, {}{:.1f} %", sign, format_gib(by), sign,
                       100 * static_cast<double>(by.count()) / static_cast<double>(planned.count()));
}

/// The cross-check by the operating system, which knows nothing of the arena.
void add_process_peaks(TextPage& page, const RunReport& report) {
    const bool device = std::any_of(report.ranks.begin(), report.ranks.end(),
                                    [](const RankMeasurement& rank) { return rank.device_peak.has_value(); });
    std::vector<std::string> titles{"", "arena's peak", "process grew by", "deviation", ""};
    if (device) titles.push_back("device");
    Table table(titles);
    constexpr std::size_t most_rows = 8;
    for (std::size_t r = 0; r < std::min(report.ranks.size(), most_rows); ++r) {
        const RankMeasurement& rank = report.ranks[r];
        table.row({fmt::format("rank {}", rank.rank), format_gib(rank.process_peak_planned),
                   format_gib(rank.process_peak), deviation(rank.process_peak_planned, rank.process_peak),
                   within_expectation(rank) ? "passes" : "too far off",
                   rank.device_peak ? format_gib(*rank.device_peak) : "–"});
    }
    const bool agree = std::all_of(report.ranks.begin(), report.ranks.end(), within_expectation);
    page.heading("Cross-check by the operating system (VmHWM)",
                 agree ? ": passes on every rank, within 3 % or 8 MiB"
                       : ": fails, off by more than 3 % and 8 MiB on some rank");
    page.table(table);
    if (report.ranks.size() > most_rows)
        page.line(fmt::format("  … and {} more ranks; --json has all", report.ranks.size() - most_rows));
}

void add_time(TextPage& page, const RunReport& report) {
    if (report.step_times_s.empty()) return;
    std::vector<double> times = report.step_times_s;
    std::sort(times.begin(), times.end());
    const double sum = std::accumulate(times.begin(), times.end(), 0.0);
    page.heading("Time");
    page.line(fmt::format("  step {} (median, slowest rank), all steps {}, whole run {}",
                          format_seconds(times[times.size() / 2]), format_seconds(sum),
                          format_seconds(report.wall_s)));
}

}  // namespace

std::string run_text(const Plan& plan, const RunReport& report, const TextStyle& style) {
    TextPage page(style);
    add_summary(page, report);
    add_scenario(page, plan);
    add_losses(page, report);
    add_agreement(page, plan, report);
    add_process_peaks(page, report);
    add_time(page, report);
    add_warnings(page, plan);
    if (!report.final_parameters_sha256.empty()) {
        page.line("");
        page.line(fmt::format("final parameters, sha256: {}", report.final_parameters_sha256), Colour::dim);
    }
    return page.take();
}

}  // namespace zeroplan
