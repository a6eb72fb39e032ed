#include "report/sim_views_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "printable.hpp"
#include "report/plan_parts.hpp"
#include "report/size_unit.hpp"
#include "report/slowest_group.hpp"
#include "zeroplan/critical_path.hpp"
#include "zeroplan/step_collectives.hpp"
#include "zeroplan/words.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t most_collectives = 8;  // rows of the text; the JSON has all

std::string share(double part, double whole) {
    return whole > 0 ? fixed(100 * part / whole, 1) + " %" : "–";
}

std::string size_in_words(double bytes) {
    const Bytes size{static_cast<std::uint64_t>(bytes)};
    const SizeUnit unit = unit_for(size);
    return fmt::format("{} {}", unit.in_binary(size), unit.binary);
}

std::string time_or_dash(double seconds) {
    return seconds > 0 ? format_seconds(seconds) : "–";
}

double sum(const std::map<std::string, double>& seconds) {
    double total = 0;
    for (const auto& [cause, of_cause] : seconds) total += of_cause;
    return total;
}

/// "forward", "backward × 15 (micro batch)": sections are named where there are several.
std::string phase_in_words(const PathPhase& phase, bool several_sections) {
    std::string text = phase.phase;
    if (phase.times > 1) text += fmt::format(" × {}", format_count(phase.times));
    if (several_sections) text += fmt::format(" ({})", in_words(phase.section));
    return text;
}

/// "ring simple"; without the protocol where no choice of NCCL's is behind it.
std::string way_in_words(const CollectiveCost& cost) {
    const std::string algorithm(to_string(cost.algorithm));
    if (!from_word<CollectiveAlgorithm>(algorithm)) return algorithm;
    return fmt::format("{} {}", algorithm, to_string(cost.protocol));
}

/// Mean load in `columns` equal parts of the step, each as a share of `capacity`.
std::vector<double> mean_load(const std::vector<LinkLoadPoint>& points, double LinkLoadPoint::*load,
                              double step_time_s, double capacity, std::size_t columns) {
    std::vector<double> mean(columns, 0.0);
    const double width = step_time_s / static_cast<double>(columns);
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
        const double value = points[i].*load;
        if (!(value > 0)) continue;
        const double from = points[i].time_s, to = points[i + 1].time_s;
        for (auto c = static_cast<std::size_t>(from / width); c < columns; ++c) {
            const double begin = static_cast<double>(c) * width;
            if (begin >= to) break;
            const double overlap = std::min(to, begin + width) - std::max(from, begin);
            mean[c] += std::max(0.0, overlap) * value / (width * capacity);
        }
    }
    return mean;
}

/// A column of eighths for every value from 0 to 1; what is idle is a dot.
std::string columns_of(const std::vector<double>& values) {
    static constexpr const char* eighths[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    std::string text;
    for (const double value : values) {
        const auto step = static_cast<std::size_t>(std::clamp(value, 0.0, 1.0) * 8);
        text += value > 0 ? eighths[std::min<std::size_t>(step, 7)] : "·";
    }
    return text;
}

/// What is exposed on the path, by cause, and the longest single wait.
void add_causes(TextPage& page, const std::vector<PathPhase>& phases) {
    std::map<std::string, double> by_cause;
    const PathPhase* longest = &phases.front();
    for (const PathPhase& phase : phases) {
        for (const auto& [cause, seconds] : phase.exposed_s) by_cause[cause] += seconds;
        if (phase.longest_wait_s > longest->longest_wait_s) longest = &phase;
    }
    std::string causes;
    for (const auto& [cause, seconds] : by_cause)
        causes +=
            fmt::format("{}{} {}", causes.empty() ? "" : ", ", in_words(cause), format_seconds(seconds));
    if (causes.empty()) return;
    page.paragraph("  exposed by cause: ", causes);
    page.paragraph("  longest wait: ",
                   fmt::format("{} for {}", format_seconds(longest->longest_wait_s), longest->longest_wait));
}

}  // namespace

void add_critical_path(TextPage& page, const Plan& plan, const SimReport& report) {
    const StepTimeline& slowest = slowest_group(report);
    const std::vector<PathPhase> phases = path_phases(plan, number_of_slowest(report), slowest);
    if (phases.empty()) return;
    const bool several = phases.front().section != phases.back().section;
    Table table({"", "time", "of the step", "computing", "exposed", "idle"});
    for (const PathPhase& phase : phases)
        table.row({phase_in_words(phase, several), format_seconds(phase.seconds),
                   share(phase.seconds, slowest.step_time_s), time_or_dash(phase.compute_s),
                   time_or_dash(sum(phase.exposed_s)), time_or_dash(phase.idle_s)});
    page.heading("Critical path", ", what the step takes its time for, in order");
    page.table(table);
    add_causes(page, phases);
}

void add_collectives(TextPage& page, const Plan& plan, const SimReport& report) {
    const std::vector<StepCollective> all = step_collectives(plan, number_of_slowest(report));
    if (all.empty()) return;
    const bool wide = page.width() > 110;
    Table table(
        wide ? std::vector<std::string>{"", "ranks", "size", "a step", "as", "start-up", "one takes", "busbw"}
             : std::vector<std::string>{"", "ranks", "size", "a step", "as", "one takes", "busbw"});
    table.left(4);
    for (std::size_t i = 0; i < std::min(all.size(), most_collectives); ++i) {
        const StepCollective& c = all[i];
        std::vector<std::string> row{
            c.kind == "send" ? c.kind : fmt::format("{}, {}", c.kind, in_words(to_string(c.group))),
            format_count(c.ranks), size_in_words(c.cost.bytes), format_count(c.count), way_in_words(c.cost)};
        if (wide) row.push_back(format_seconds(c.cost.start_s()));
        row.push_back(format_seconds(c.cost.seconds()));
        row.push_back(fmt::format("{:.4g} GB/s", c.bus_bytes_per_s / 1e9));
        table.row(std::move(row));
    }
    page.heading("Collectives of a step", ", each alone on its links");
    page.table(table);
    if (all.size() > most_collectives)
        page.line(fmt::format("  and {} more, which take less in all; --json lists them",
                              format_count(all.size() - most_collectives)));
}

void add_links(TextPage& page, const Plan& plan, const SimReport& report) {
    if (report.links.empty()) return;
    const GpuSpec& gpu = plan.scenario.cluster.gpu;
    const StepTimeline& slowest = slowest_group(report);
    const std::size_t columns = page.width() > 110 ? 40 : 24;
    const std::vector<LinkLoadPoint> load = link_load_over_time(plan, number_of_slowest(report), slowest);
    const auto over_time = [&](const LinkLoad& link) -> std::string {
        // Slow ones ("nic at 0.5") carry what the others do: collectives run at the slowest one's pace.
        const std::string kind = link.name.substr(0, link.name.find(" at "));
        double LinkLoadPoint::*carried = nullptr;
        if (kind == "nic") carried = &LinkLoadPoint::nic_bytes_per_s;
        if (kind == bridge_name) carried = &LinkLoadPoint::bridge_bytes_per_s;
        if (kind == intra_node_link_name(plan.scenario.cluster))
            carried = &LinkLoadPoint::intra_node_bytes_per_s;
        if (carried == nullptr) return {};
        return columns_of(mean_load(load, carried, slowest.step_time_s, link.bytes_per_s, columns));
    };
    Table table({"", "links", "capacity of one", "carried by one", "busy", "over the step"});
    table.left(5);
    for (const LinkLoad& link : report.links)
        table.row({link.name, format_count(link.links), fmt::format("{:.4g} GB/s", link.bytes_per_s / 1e9),
                   fmt::format("{:.4g} GB", link.bytes / 1e9), fixed(100 * link.utilisation, 1) + " %",
                   over_time(link)});
    page.heading("Links in a step");
    page.table(table);
    if (gpu.is_host || gpu.link_bytes_per_s <= 0) return;
    page.paragraph(
        "  ",
        fmt::format("capacity is what payloads reach by NCCL's own figures; the peak of the GPU's {} is "
                    "{:.4g} GB/s a direction",
                    gpu.link, gpu.link_bytes_per_s / 1e9));
}

}  // namespace zeroplan
