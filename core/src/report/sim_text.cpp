#include <algorithm>

#include <fmt/format.h>

#include "printable.hpp"
#include "report/plan_parts.hpp"
#include "report/sim_views_text.hpp"
#include "report/slowest_group.hpp"
#include "report/what_if_text.hpp"
#include "zeroplan/fabric_sites.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan {
namespace {

std::string percent(double part, double whole) {
    return whole > 0 ? fixed(100 * part / whole, 1) + " %" : "–";
}

/// A rate as people read it: "6,668", "0.1234".
std::string rate(double per_second) {
    if (per_second >= 1000 && per_second < 1e15)
        return format_count(static_cast<std::uint64_t>(per_second + 0.5));
    return fmt::format("{:.4g}", per_second);
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
                   fmt::format("{}, forward × 3 (6 FLOPs a weight and token), of {:.4g} TFLOP/s, the GPU's "
                               "dense {} peak; HFU also what is recomputed",
                               counted, peak / 1e12, to_string(training.compute_dtype)),
                   Colour::dim);
}

void add_step(TextPage& page, const Plan& plan, const SimReport& report, const StepTimeline& slowest) {
    const bool tokens = plan.scenario.model.batch == BatchKind::tokens;
    page.line(fmt::format("step {}: {} {}/s per GPU, MFU {} %, HFU {} %", format_seconds(slowest.step_time_s),
                          rate(report.throughput.tokens_per_s_per_gpu), tokens ? "tokens" : "samples",
                          fixed(100 * report.throughput.mfu, 1), fixed(100 * report.throughput.hfu, 1)),
              Colour::bold);
    add_mfu_convention(page, plan);
    page.line(fmt::format("interval {} to {}, fidelity: {}", format_seconds(slowest.low_s),
                          format_seconds(slowest.high_s), slowest.fidelity));
}

void add_time(TextPage& page, const SimReport& report, const StepTimeline& slowest, bool fabric_blocks) {
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
    if (slowest.offload_s > 0) row("copying and host work only", slowest.exposed_offload_s);
    row("idle", slowest.bubble_s);
    table.rule();
    row("communicating, summed", slowest.communication_s);
    if (slowest.slowed_s > 0) row("computing longer beside it, summed", slowest.slowed_s);
    if (slowest.offload_s > 0) row("copying and host work, summed", slowest.offload_s);
    page.heading("Where the step's time goes");
    page.table(table);
    page.paragraph("  ",
                   "summed: the durations of all collectives, also of those that run at once or beside "
                   "computing; above 100 % where several streams communicate");
    page.line(fmt::format("  closed form, no link shared between streams{}: {}",
                          fabric_blocks ? " and no switch that holds anything back" : "",
                          format_seconds(report.closed_form.step_time_s)));
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

}  // namespace

std::string sim_text(const Plan& plan, const SimReport& report, const TextStyle& style) {
    return sim_text(plan, report, SimExtras{}, style);
}

std::string sim_text(const Plan& plan, const SimReport& report, const SimExtras& extras,
                     const TextStyle& style) {
    TextPage page(style);
    const StepTimeline& slowest = slowest_group(report);
    add_verdict(page, plan);
    add_remedies(page, plan);
    add_step(page, plan, report, slowest);
    add_scenario(page, plan);
    if (extras.what_if) add_what_if(page, *extras.what_if);
    add_time(page, report, slowest, extras.what_if && blocks(fabric_of(extras.what_if->asked)));
    add_rank_groups(page, plan, report);
    add_critical_path(page, plan, report);
    add_collectives(page, plan, report);
    add_links(page, plan, report);
    if (extras.goodput) add_goodput(page, *extras.goodput, slowest.step_time_s);
    add_warnings(page, plan);
    page.line("");
    page.line(fmt::format("simulated in {}", format_seconds(report.wall_s)), Colour::dim);
    return page.take();
}

}  // namespace zeroplan
