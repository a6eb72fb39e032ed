#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "report/plan_parts.hpp"
#include "report/slowest_group.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan {
namespace {

std::string percent(double part, double whole) {
    return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "–";
}

/// The FLOPs behind MFU differ by a third and more between those who publish it.
void add_mfu_convention(TextPage& page, const Plan& plan) {
    const TrainingConfig& training = plan.scenario.training;
    const double peak = peak_flop_per_s(plan.scenario.cluster.gpu, training.compute_dtype);
    if (peak <= 0) return;
    const char* counted = plan.scenario.model.batch == BatchKind::tokens
                              ? "matrix products and attention over the whole square, causal or not"
                              : "matrix products";
    page.paragraph("MFU counts ",
                   fmt::format("{}, forward × 3 (6 FLOPs a weight and token), nothing that is recomputed; of "
                               "{:.4g} TFLOP/s, the GPU's dense {} peak",
                               counted, peak / 1e12, to_string(training.compute_dtype)),
                   Colour::dim);
}

void add_step(TextPage& page, const Plan& plan, const SimReport& report, const StepTimeline& slowest) {
    const bool tokens = plan.scenario.model.batch == BatchKind::tokens;
    page.line(fmt::format("step {}: {:.5g} {}/s per GPU, MFU {:.1f} %", format_seconds(slowest.step_time_s),
                          report.throughput.tokens_per_s_per_gpu, tokens ? "tokens" : "samples",
                          100 * report.throughput.mfu),
              Colour::bold);
    add_mfu_convention(page, plan);
    page.line(fmt::format("interval {} to {}, fidelity: {}", format_seconds(slowest.low_s),
                          format_seconds(slowest.high_s), slowest.fidelity));
}

void add_time(TextPage& page, const SimReport& report, const StepTimeline& slowest) {
    const double step = slowest.step_time_s;
    const std::size_t bar_width = page.width() > 90 ? 30 : 20;
    Table table({"", "time", "of the step", ""});
    table.left(3);
    const auto row = [&](const char* what, double seconds) {
        table.row({what, format_seconds(seconds), percent(seconds, step),
                   bar(step > 0 ? seconds / step : 0, bar_width)});
    };
    row("computing", slowest.compute_s);
    row("communicating only (exposed)", slowest.exposed_communication_s);
    row("idle", slowest.bubble_s);
    table.rule();
    row("communicating, summed", slowest.communication_s);
    page.heading("Where the step's time goes");
    page.table(table);
    page.paragraph("  ",
                   "summed: the durations of all collectives, also of those that run at once or beside "
                   "computing; above 100 % where several streams communicate");
    page.line(fmt::format("  closed form, no link shared between streams: {}",
                          format_seconds(report.closed_form.step_time_s)));
}

/// "+266 ms", "−3 ms"
std::string difference(double seconds) {
    return seconds < 0 ? "−" + format_seconds(-seconds) : "+" + format_seconds(seconds);
}

void add_waited_for(TextPage& page, const WaitedFor& waited) {
    const bool one = waited.ranks.size() == 1 && waited.ranks[0].first == waited.ranks[0].last;
    const std::string share =
        waited.last_of == waited.collectives
            ? fmt::format("all {}", format_count(waited.collectives))
            : fmt::format("{} of the {}", format_count(waited.last_of), format_count(waited.collectives));
    page.paragraph("  ",
                   fmt::format("everybody waits for {}: {} last to {} collectives that ranks come to at "
                               "different times; the others stand without work {} longer than {}",
                               ranks_in_words(waited.ranks), one ? "it comes" : "they come", share,
                               format_seconds(waited.waiting_s), one ? "it" : "they do"));
}

void add_what_if(TextPage& page, const SimReport& report) {
    if (!report.what_if || report.what_if->causes.empty()) return;
    Table table({"", "step", "more", "exposed wait"});
    table.row({"without", format_seconds(report.what_if->step_time_without_s), "", ""});
    for (const StepCause& cause : report.what_if->causes)
        table.row({cause.cause, format_seconds(cause.step_time_s), difference(cause.added_s),
                   difference(cause.added_exposed_communication_s + cause.added_idle_s)});
    page.heading("What if", ", each cause on top of those above it");
    page.table(table);
    page.paragraph("  ",
                   "exposed wait: time that ranks only communicate or stand idle, mean over all of them");
    if (report.what_if->waited_for) add_waited_for(page, *report.what_if->waited_for);
}

/// "5.21 h": what is too long for seconds.
std::string long_time(double seconds) {
    constexpr std::array<std::pair<double, const char*>, 4> units{
        {{365 * 86400.0, "years"}, {86400.0, "days"}, {3600.0, "h"}, {60.0, "min"}}};
    for (const auto& [size, name] : units)
        if (seconds >= 2 * size) return fmt::format("{:.3g} {}", seconds / size, name);
    return format_seconds(seconds);
}

void add_goodput(TextPage& page, const SimReport& report, const StepTimeline& slowest) {
    if (!report.goodput) return;
    const Goodput& run = *report.goodput;
    page.heading("A long run with failures");
    page.line(fmt::format("  the job fails every {} on average; a restart takes {}", long_time(run.mtbf_s),
                          long_time(run.restart_s)));
    page.line(fmt::format("  a checkpoint of {:.4g} GB takes {}", run.checkpoint_bytes / 1e9,
                          long_time(run.checkpoint_s)));
    Table table({"checkpoints", "work between them", "goodput", ""});
    table.left(3);
    const auto row = [&](const char* name, double interval, double goodput, const char* rule) {
        table.row({name, long_time(interval), fmt::format("{:.2f} %", 100 * goodput), rule});
    };
    if (run.interval_is_given) row("as asked", run.interval_s, run.goodput, "");
    row("best", run.best_interval_s, run.best_goodput, "highest goodput by the renewal formula");
    row("Daly", run.daly_interval_s, run.daly_goodput, "his series, 2006");
    row("Young", run.young_interval_s, run.young_goodput, "√(2 · checkpoint · MTBF), 1974");
    page.table(table);
    page.paragraph("  ",
                   "goodput: the share of the time spent on steps that are kept, exact where failures come "
                   "at random, also during restarts, and the job stands still while it writes (Daly 2006)");
    if (run.goodput > 0)
        page.line(fmt::format("  a step takes {} of the whole run's time",
                              format_seconds(slowest.step_time_s / run.goodput)));
}

void add_rank_groups(TextPage& page, const Plan& plan, const SimReport& report) {
    if (report.rank_groups.size() < 2) return;
    Table table({"", "step", "computing", "exposed", "idle"});
    for (std::size_t g = 0; g < report.rank_groups.size() && g < plan.rank_groups.size(); ++g) {
        const StepTimeline& step = report.rank_groups[g];
        table.row({ranks_in_words(plan.rank_groups[g].ranks), format_seconds(step.step_time_s),
                   format_seconds(step.compute_s), format_seconds(step.exposed_communication_s),
                   format_seconds(step.bubble_s)});
    }
    page.heading("Ranks", ", grouped where they are the same");
    page.table(table);
}

void add_links(TextPage& page, const Plan& plan, const SimReport& report) {
    if (report.links.empty()) return;
    Table table({"", "links", "capacity of one", "carried by one", "busy"});
    for (const LinkLoad& link : report.links)
        table.row({link.name, format_count(link.links), fmt::format("{:.4g} GB/s", link.bytes_per_s / 1e9),
                   fmt::format("{:.4g} GB", link.bytes / 1e9),
                   fmt::format("{:.1f} %", 100 * link.utilisation)});
    page.heading("Links in a step");
    page.table(table);
    const GpuSpec& gpu = plan.scenario.cluster.gpu;
    if (gpu.is_host || gpu.link_bytes_per_s <= 0) return;
    page.paragraph(
        "  ",
        fmt::format("capacity is what payloads reach by NCCL's own figures; the peak of the GPU's {} is "
                    "{:.4g} GB/s a direction",
                    gpu.link, gpu.link_bytes_per_s / 1e9));
}

}  // namespace

std::string sim_text(const Plan& plan, const SimReport& report, const TextStyle& style) {
    TextPage page(style);
    const StepTimeline& slowest = slowest_group(report);
    add_verdict(page, plan);
    add_remedies(page, plan);
    add_step(page, plan, report, slowest);
    add_scenario(page, plan);
    add_what_if(page, report);
    add_time(page, report, slowest);
    add_rank_groups(page, plan, report);
    add_links(page, plan, report);
    add_goodput(page, report, slowest);
    add_warnings(page, plan);
    page.line("");
    page.line(fmt::format("simulated in {}", format_seconds(report.wall_s)), Colour::dim);
    return page.take();
}

}  // namespace zeroplan
