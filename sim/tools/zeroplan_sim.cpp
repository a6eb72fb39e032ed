#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "zeroplan/chakra_trace.hpp"
#include "zeroplan/command/output.hpp"
#include "zeroplan/command/output_files.hpp"
#include "zeroplan/command/progress_line.hpp"
#include "zeroplan/command/run_command.hpp"
#include "zeroplan/command/scenario_flags.hpp"
#include "zeroplan/command/what_if_flags.hpp"
#include "zeroplan/cost_model.hpp"
#include "zeroplan/goodput.hpp"
#include "zeroplan/nccl_tuner.hpp"
#include "zeroplan/rank_classes.hpp"
#include "zeroplan/simulate.hpp"
#include "zeroplan/step_collectives.hpp"
#include "zeroplan/trace.hpp"
#include "zeroplan/what_if_io.hpp"

namespace {

struct Flags {
    zeroplan::command::ScenarioFlags scenario;
    zeroplan::command::OutputFlags output;
    zeroplan::command::WhatIfFlags what_if;
    std::string trace, csv, chakra, tuner, nccl_algorithm, nccl_protocol;
    bool sharp = false;
};

/// A plan with the constants that its simulated time rests on beside those of its memory, and ranks that a
/// what-if makes different apart.
zeroplan::Plan plan_of(const Flags& flags, zeroplan::WhatIf& what_if) {
    zeroplan::Plan plan = flags.output.reports() ? zeroplan::command::plan_with_remedies(flags.scenario)
                                                 : zeroplan::command::plan(flags.scenario);
    what_if = zeroplan::resolve_what_if(zeroplan::command::to_request(flags.scenario), plan.scenario);
    const auto constants = zeroplan::cost_constants(plan.scenario.cluster.calibration);
    plan.constants.insert(plan.constants.end(), constants.begin(), constants.end());
    for (zeroplan::Warning& warning : zeroplan::what_if_warnings(plan.scenario, what_if))
        plan.warnings.push_back(std::move(warning));
    if (what_if.empty()) return plan;
    const zeroplan::RankClasses classes = zeroplan::rank_classes(plan, what_if);
    return zeroplan::split_rank_groups(std::move(plan), classes);
}

/// What can't be timed is blamed on the flag that asked for it, as what can't be planned is.
zeroplan::SimReport simulated(const Flags& flags, const zeroplan::Plan& plan, const zeroplan::WhatIf& what_if,
                              zeroplan::command::ProgressLine& progress, zeroplan::SimExtras& extras) {
    const zeroplan::SimOptions options{[&progress](double share) { progress.show(share); }};
    try {
        if (what_if.failures) extras.goodput = zeroplan::goodput(plan, *what_if.failures);
        if (what_if.empty()) return zeroplan::simulate(plan, options);
        zeroplan::WhatIfStep different = zeroplan::simulate(plan, what_if, options);
        extras.what_if = std::move(different.what_if);
        return std::move(different.step);
    } catch (const zeroplan::Error& error) {
        throw zeroplan::blame(error, zeroplan::command::to_request(flags.scenario));
    }
}

void report(const Flags& flags, const zeroplan::Plan& plan, const zeroplan::SimReport& step,
            const zeroplan::SimExtras& extras) {
    if (flags.output.json)
        zeroplan::command::print(zeroplan::sim_json(plan, step, extras));
    else if (!flags.output.quiet)
        zeroplan::command::print(zeroplan::sim_text(plan, step, extras, zeroplan::command::terminal_style()));
}

constexpr std::uint64_t most_chakra_ranks = 4096;

/// A file a rank, then that of their communicators; none unless they are asked for.
std::vector<std::string> chakra_files(const Flags& flags, std::uint64_t ranks) {
    std::vector<std::string> files;
    if (flags.chakra.empty()) return files;
    for (std::uint64_t rank = 0; rank < ranks; ++rank)
        files.push_back(fmt::format("{}.{}.et", flags.chakra, rank));
    files.push_back(flags.chakra + ".communicators.json");
    return files;
}

void check_chakra(std::uint64_t ranks, const zeroplan::WhatIf& what_if) {
    if (!what_if.empty())
        throw zeroplan::Error(
            zeroplan::ErrorCode::not_supported,
            "Chakra traces are of the step where all is well, but something is different here",
            "leave the what-ifs out, or --chakra; --trace shows the step with them",
            {"command line", "--chakra"});
    if (ranks > most_chakra_ranks)
        throw zeroplan::Error(
            zeroplan::ErrorCode::not_supported,
            fmt::format("Chakra traces are a file a rank, and {} are more than the {} written", ranks,
                        most_chakra_ranks),
            fmt::format("trace the same job on at most {} GPUs", most_chakra_ranks),
            {"command line", "--chakra"});
}

/// Before the work: every file there will be, and for --chakra how many ranks have one.
std::vector<std::string> checked_chakra_files(const Flags& flags) {
    std::vector<std::string> chakra;
    if (!flags.chakra.empty()) {
        const zeroplan::ScenarioRequest request = zeroplan::command::to_request(flags.scenario);
        const zeroplan::Scenario scenario = zeroplan::resolve_scenario(request);
        check_chakra(scenario.world_size(), zeroplan::resolve_what_if(request, scenario));
        chakra = chakra_files(flags, scenario.world_size());
    }
    std::vector<std::string> files{flags.trace, flags.csv, flags.tuner, flags.scenario.save_scenario};
    files.insert(files.end(), chakra.begin(), chakra.end());
    zeroplan::command::check_writable(files);
    return chakra;
}

void write_chakra(const std::vector<std::string>& files, const zeroplan::Plan& plan) {
    if (files.empty()) return;
    const zeroplan::ChakraTraces traces(plan);
    const auto text = [&](std::size_t file) {
        return file + 1 < files.size() ? traces.of_rank(file) : traces.communicators();
    };
    zeroplan::command::files_step(files, text)();
}

int simulate_and_report(const Flags& flags) {
    using namespace zeroplan::command;
    const std::vector<std::string> chakra = checked_chakra_files(flags);
    zeroplan::WhatIf what_if;
    std::optional<zeroplan::Plan> planned;
    {
        const BusyLine busy("planning", !flags.output.quiet && !flags.output.json);
        planned = plan_of(flags, what_if);
    }
    zeroplan::Plan& plan = *planned;
    ProgressLine progress("simulating", !flags.output.quiet && !flags.output.json);
    zeroplan::SimExtras extras;
    const zeroplan::SimReport step = simulated(flags, plan, what_if, progress, extras);
    progress.clear();
    for (zeroplan::Warning& warning : zeroplan::forced_choice_warnings(plan))
        plan.warnings.push_back(std::move(warning));
    if (!flags.tuner.empty())
        for (zeroplan::Warning& warning : zeroplan::nccl_tuner_warnings(plan))
            plan.warnings.push_back(std::move(warning));
    deliver({save_step(flags.scenario, plan.scenario),
             file_step(flags.trace, [&] { return zeroplan::trace_json(plan, step.rank_groups); }),
             file_step(flags.csv, [&] { return zeroplan::step_csv(plan, step.rank_groups); }),
             file_step(flags.tuner, [&] { return zeroplan::nccl_tuner_csv(plan); }),
             [&] { write_chakra(chakra, plan); }, [&] { report(flags, plan, step, extras); }});
    return plan.memory.verdict == zeroplan::Verdict::does_not_fit ? 1 : 0;
}

void add_nccl_flags(CLI::App& app, Flags& flags) {
    app.add_option(
           "--nccl-algo", flags.nccl_algorithm,
           "Force ring, tree, nvls, nvls_tree, pat, collnet_direct or collnet_chain, as NCCL_ALGO does, on "
           "every collective that has it")
        ->type_name("ALGORITHM")
        ->group("What if");
    app.add_option("--nccl-proto", flags.nccl_protocol, "Force ll, ll128 or simple, as NCCL_PROTO does")
        ->type_name("PROTOCOL")
        ->group("What if");
    app.add_flag("--sharp", flags.sharp,
                 "The network's switches reduce (NVIDIA SHARP), and NCCL_COLLNET_ENABLE is 1")
        ->group("What if");
}

void add_nccl_settings(const CLI::App& app, Flags& flags) {
    std::vector<zeroplan::Setting>& settings = flags.scenario.more;
    const auto add_word = [&](const char* flag, const char* pointer, const std::string& word) {
        if (app.count(flag) > 0) settings.push_back(zeroplan::word_setting(pointer, word, flag));
    };
    add_word("--nccl-algo", "/cluster/nccl/algorithm", flags.nccl_algorithm);
    add_word("--nccl-proto", "/cluster/nccl/protocol", flags.nccl_protocol);
    if (flags.sharp) settings.push_back({"/cluster/inter_node/sharp", "true", "--sharp"});
}

}  // namespace

int main(int argc, char** argv) {
    Flags flags;
    CLI::App app{
        "Plans a step and simulates it on the cluster's links: step time, throughput, exposed communication.",
        "zeroplan sim"};
    zeroplan::command::add_scenario_flags(app, flags.scenario);
    zeroplan::command::add_what_if_flags(app, flags.what_if);
    add_nccl_flags(app, flags);
    zeroplan::command::add_output_flags(app, flags.output);
    app.add_option("--trace", flags.trace, "Write the time line as Chrome trace JSON, for ui.perfetto.dev")
        ->type_name("FILE")
        ->group("Output");
    app.add_option("--csv", flags.csv, "Write every operation's start and end as a table")
        ->type_name("FILE")
        ->group("Output");
    app.add_option("--chakra", flags.chakra,
                   "Write MLCommons Chakra execution traces, a file a rank (PREFIX.0.et …), and the ranks of "
                   "their communicators")
        ->type_name("PREFIX")
        ->group("Output");
    app.add_option("--nccl-tuner", flags.tuner,
                   "Write the fastest algorithm and protocol by size, for NCCL's example tuner plug-in")
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
    return zeroplan::command::run_command(app, argc, argv, [&app, &flags] {
        flags.scenario.more = zeroplan::command::what_if_settings(flags.what_if);
        add_nccl_settings(app, flags);
        return simulate_and_report(flags);
    });
}
