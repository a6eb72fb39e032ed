#include "report/what_if_text.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "report/plan_parts.hpp"

namespace zeroplan {
namespace {

/// "+266 ms", "−3 ms"; what is rounding beside a step of `step_s` is none.
std::string difference(double seconds, double step_s) {
    if (std::abs(seconds) <= rounding_share * step_s) return "none";
    return seconds < 0 ? "−" + format_seconds(-seconds) : "+" + format_seconds(seconds);
}

/// "5.21 h": what is too long for seconds.
std::string long_time(double seconds) {
    constexpr std::array<std::pair<double, const char*>, 4> units{
        {{365 * 86400.0, "years"}, {86400.0, "days"}, {3600.0, "h"}, {60.0, "min"}}};
    for (const auto& [size, name] : units)
        if (seconds >= 2 * size) return fmt::format("{:.3g} {}", seconds / size, name);
    return format_seconds(seconds);
}

std::string share(double goodput) {
    return fmt::format("{:.2f} %", 100 * goodput);
}

void add_waited_for(TextPage& page, const WaitedFor& waited) {
    const bool one = waited.ranks.size() == 1 && waited.ranks[0].first == waited.ranks[0].last;
    const char* whose = one ? "its" : "their";
    const std::string share = waited.last_of == waited.collectives
                                  ? fmt::format("all {} {}", whose, format_count(waited.collectives))
                                  : fmt::format("{} of {} {}", format_count(waited.last_of), whose,
                                                format_count(waited.collectives));
    page.paragraph("  ",
                   fmt::format("everybody waits for {}: {} last to {} collectives that ranks come to at "
                               "different times; the others there stand without work {} longer than {}",
                               ranks_in_words(waited.ranks), one ? "it comes" : "they come", share,
                               format_seconds(waited.waiting_s), one ? "it" : "they do"));
}

void add_background(TextPage& page, const NeighbourJob& other) {
    page.paragraph("  ",
                   fmt::format("a step of {} takes {} where it has the fabric for itself, {}", other.name,
                               format_seconds(other.step_time_alone_s),
                               other.step_time_s ? "beside this job " + format_seconds(*other.step_time_s)
                                                 : "and none ends within a step of this job"));
}

}  // namespace

void add_what_if(TextPage& page, const WhatIfReport& report) {
    if (report.causes.empty()) return;
    Table table({"", "step", "more", "exposed wait"});
    table.row({"without", format_seconds(report.step_time_without_s), "", ""});
    for (const StepCause& cause : report.causes)
        table.row({cause.cause, format_seconds(cause.step_time_s),
                   difference(cause.added_s, report.step_time_without_s),
                   difference(cause.added_exposed_communication_s + cause.added_idle_s,
                              report.step_time_without_s)});
    page.heading("What if", ", each cause on top of those above it");
    page.table(table);
    page.paragraph("  ",
                   "exposed wait: time that ranks only communicate or stand idle, mean over all of them");
    if (report.waited_for) add_waited_for(page, *report.waited_for);
    if (report.background) add_background(page, *report.background);
}

void add_goodput(TextPage& page, const Goodput& run, double step_time_s) {
    page.heading("A long run with failures");
    page.paragraph("  ", fmt::format("the job fails every {} on average; {}", long_time(run.mtbf_s),
                                     run.restart_s > 0 ? "a restart takes " + long_time(run.restart_s)
                                                       : "restarts taken as free: --restart-time says how "
                                                         "long one takes"));
    page.line(fmt::format("  a checkpoint of {:.4g} GB takes {}", run.checkpoint_bytes / 1e9,
                          long_time(run.checkpoint_s)));
    Table table({"checkpoints", "work between them", "goodput", ""});
    table.left(3);
    const auto row = [&](const char* name, double interval, double goodput, const char* rule) {
        table.row({name, long_time(interval), share(goodput), rule});
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
                              format_seconds(step_time_s / run.goodput)));
}

std::string what_if_text(const SimExtras& extras, double step_time_s, const TextStyle& style) {
    TextPage page(style);
    if (extras.what_if) add_what_if(page, *extras.what_if);
    if (extras.goodput) add_goodput(page, *extras.goodput, step_time_s);
    return page.take();
}

std::string goodput_phrase(const Goodput& run) {
    const auto with = [](double goodput, double interval_s) {
        return fmt::format("{} with {}", share(goodput), long_time(interval_s));
    };
    if (!run.interval_is_given)
        return fmt::format("goodput {} of work between checkpoints, the best interval",
                           with(run.best_goodput, run.best_interval_s));
    return fmt::format("goodput {} of work between checkpoints, at best {}",
                       with(run.goodput, run.interval_s), with(run.best_goodput, run.best_interval_s));
}

}  // namespace zeroplan
