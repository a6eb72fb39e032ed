#include <array>
#include <map>

#include <CLI/CLI.hpp>

#include "zeroplan/command/output.hpp"
#include "zeroplan/command/output_files.hpp"
#include "zeroplan/command/progress_line.hpp"
#include "zeroplan/command/run_command.hpp"
#include "zeroplan/command/scenario_flags.hpp"
#include "zeroplan/cost_model.hpp"
#include "zeroplan/goodput.hpp"
#include "zeroplan/rank_classes.hpp"
#include "zeroplan/simulate.hpp"
#include "zeroplan/trace.hpp"
#include "zeroplan/what_if_io.hpp"

namespace {

struct Flags {
    zeroplan::command::ScenarioFlags scenario;
    zeroplan::command::OutputFlags output;
    std::vector<std::string> stragglers, slow_links;
    std::map<std::string, std::string> failures;  ///< flag → its text
    std::string trace, csv;
};

constexpr const char* straggler_flag = "--straggler";
constexpr const char* slow_link_flag = "--slow-link";

/// Keys of what_if.failures.
struct FailureFlag {
    const char* name;
    const char* pointer;
    bool is_duration;
    const char* type;
    const char* help;
};
constexpr std::array failure_flags{
    FailureFlag{"--gpu-mtbf", "/what_if/failures/gpu_mtbf_s", true, "TIME",
                "Mean time between failures of one GPU: seconds, or as 50000h, 30d, 5y"},
    FailureFlag{"--node-mtbf", "/what_if/failures/node_mtbf_s", true, "TIME", "Of one node, beside its GPUs"},
    FailureFlag{"--checkpoint-bandwidth", "/what_if/failures/checkpoint_bytes_per_second", false, "B/S",
                "Bytes a second that storage takes from all ranks together, as 50e9"},
    FailureFlag{"--checkpoint-interval", "/what_if/failures/checkpoint_interval_s", true, "TIME",
                "Work between checkpoints, as 30m; the best one is told in any case"},
    FailureFlag{"--restart-time", "/what_if/failures/restart_s", true, "TIME",
                "From a failure to the first step, loading included"},
};

void set_what_if(Flags& flags) {
    auto& more = flags.scenario.more;
    if (!flags.stragglers.empty())
        more.push_back(zeroplan::straggler_setting(flags.stragglers, straggler_flag));
    if (!flags.slow_links.empty())
        more.push_back(zeroplan::slow_link_setting(flags.slow_links, slow_link_flag));
    for (const FailureFlag& flag : failure_flags) {
        const auto found = flags.failures.find(flag.name);
        if (found == flags.failures.end()) continue;
        more.push_back(flag.is_duration ? zeroplan::duration_setting(flag.pointer, found->second, flag.name)
                                        : zeroplan::text_setting(flag.pointer, found->second, flag.name));
    }
}

/// A plan with the constants that its simulated time rests on beside those of its memory, and ranks that a
/// what-if makes different apart.
zeroplan::Plan plan_of(const Flags& flags, zeroplan::WhatIf& what_if) {
    zeroplan::Plan plan = flags.output.reports() ? zeroplan::command::plan_with_remedies(flags.scenario)
                                                 : zeroplan::command::plan(flags.scenario);
    what_if = zeroplan::resolve_what_if(zeroplan::command::to_request(flags.scenario), plan.scenario);
    const auto constants = zeroplan::cost_constants();
    plan.constants.insert(plan.constants.end(), constants.begin(), constants.end());
    if (what_if.empty()) return plan;
    const zeroplan::RankClasses classes = zeroplan::rank_classes(plan, what_if);
    return zeroplan::split_rank_groups(std::move(plan), classes);
}

/// What can't be timed is blamed on the flag that asked for it, as what can't be planned is.
zeroplan::SimReport simulated(const Flags& flags, const zeroplan::Plan& plan, const zeroplan::WhatIf& what_if,
                              zeroplan::command::ProgressLine& progress) {
    try {
        return zeroplan::simulate(plan, {[&progress](double share) { progress.show(share); }, what_if});
    } catch (const zeroplan::Error& error) {
        throw zeroplan::blame(error, zeroplan::command::to_request(flags.scenario));
    }
}

zeroplan::Goodput goodput_of(const Flags& flags, const zeroplan::Plan& plan,
                             const zeroplan::Failures& failures) {
    try {
        return zeroplan::goodput(plan, failures);
    } catch (const zeroplan::Error& error) {
        throw zeroplan::blame(error, zeroplan::command::to_request(flags.scenario));
    }
}

void report(const Flags& flags, const zeroplan::Plan& plan, const zeroplan::SimReport& step) {
    if (flags.output.json)
        zeroplan::command::print(zeroplan::sim_json(plan, step));
    else if (!flags.output.quiet)
        zeroplan::command::print(zeroplan::sim_text(plan, step, zeroplan::command::terminal_style()));
}

int simulate_and_report(const Flags& flags) {
    using namespace zeroplan::command;
    for (const std::string& path : {flags.trace, flags.csv}) check_writable(path);
    zeroplan::WhatIf what_if;
    const zeroplan::Plan plan = plan_of(flags, what_if);
    ProgressLine progress("simulating", !flags.output.quiet && !flags.output.json);
    zeroplan::SimReport step = simulated(flags, plan, what_if, progress);
    progress.clear();
    if (what_if.failures) step.goodput = goodput_of(flags, plan, *what_if.failures);
    deliver({file_step(flags.trace, [&] { return zeroplan::trace_json(plan, step.rank_groups); }),
             file_step(flags.csv, [&] { return zeroplan::step_csv(plan, step.rank_groups); }),
             [&] { report(flags, plan, step); }});
    return plan.memory.verdict == zeroplan::Verdict::does_not_fit ? 1 : 0;
}

void add_what_if_flags(CLI::App& app, Flags& flags) {
    const auto add = [&app](const char* name, std::vector<std::string>& texts, const char* type,
                            const char* help) {
        app.add_option(name, texts, help)->type_name(type)->allow_extra_args(false)->group("What if");
    };
    add(straggler_flag, flags.stragglers, "RANK=FACTOR",
        "The rank computes at this factor of its speed, as 5=0.8; may be given several times");
    add(slow_link_flag, flags.slow_links, "LINK=FACTOR",
        "A link at this factor of its bandwidth: nic:RANK, gpu:RANK (to the GPUs of its node) or node:NODE "
        "(all "
        "its NICs), as nic:5=0.5; may be given several times");
    for (const FailureFlag& flag : failure_flags)
        app.add_option_function<std::string>(
               flag.name,
               [&flags, name = flag.name](const std::string& text) { flags.failures[name] = text; },
               flag.help)
            ->type_name(flag.type)
            ->group("A long run with failures");
}

}  // namespace

int main(int argc, char** argv) {
    Flags flags;
    CLI::App app{
        "Plans a step and simulates it on the cluster's links: step time, throughput, exposed communication.",
        "zeroplan sim"};
    zeroplan::command::add_scenario_flags(app, flags.scenario);
    add_what_if_flags(app, flags);
    zeroplan::command::add_output_flags(app, flags.output);
    app.add_option("--trace", flags.trace, "Write the time line as Chrome trace JSON, for ui.perfetto.dev")
        ->type_name("FILE")
        ->group("Output");
    app.add_option("--csv", flags.csv, "Write every operation's start and end as a table")
        ->type_name("FILE")
        ->group("Output");
    app.footer(
        "Exit status: 0 it fits, 1 memory does not fit (the time is reported all the same), 2 bad input, 3 "
        "the simulation failed or its result could not be written.\n\n"
        "Example: how long is a ZeRO-3 step of Llama-3-8B on two DGX H100, and what does it wait for?\n"
        "  zeroplan sim --model llama-3-8b --topology dgx-h100 --nodes 2 --zero 3 --micro-batch 2 --trace "
        "step.json\n\n"
        "Example: what if one GPU is throttled and one NIC has trained at half its rate?\n"
        "  zeroplan sim --model llama-3-8b --topology dgx-h100 --nodes 2 --zero 3 --straggler 5=0.8 "
        "--slow-link "
        "nic:9=0.5");
    return zeroplan::command::run_command(app, argc, argv, [&flags] {
        set_what_if(flags);
        return simulate_and_report(flags);
    });
}
