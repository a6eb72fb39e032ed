#include <unistd.h>

#include <chrono>
#include <cstdio>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "scenario_of_run.hpp"
#include "zeroplan/command/output.hpp"
#include "zeroplan/command/output_files.hpp"
#include "zeroplan/command/run_command.hpp"
#include "zeroplan/runner/host_run.hpp"
#include "zeroplan/runner/launcher.hpp"
#include "zeroplan/runner/rank_environment.hpp"

namespace zeroplan::tool {
namespace {

struct RunFlags {
    command::ScenarioFlags scenario;
    command::OutputFlags output;
    std::optional<int> ranks;
    std::string backend = "host";
    std::string trace;
};

/// The losses as they come, on one line that is written over; on a terminal only.
class LossLine {
public:
    explicit LossLine(bool wanted) : shown_(wanted && isatty(STDERR_FILENO) == 1) {}
    ~LossLine() { clear(); }
    LossLine(const LossLine&) = delete;
    LossLine& operator=(const LossLine&) = delete;

    void show(const runner::StepProgress& progress) {
        const auto now = std::chrono::steady_clock::now();
        const bool is_soon = now - last_ < std::chrono::milliseconds(50) && progress.step != progress.steps;
        if (!shown_ || is_soon) return;
        last_ = now;
        fmt::print(stderr, "\r\033[Kstep {} of {}  loss {:.6g}", progress.step, progress.steps,
                   progress.loss);
        std::fflush(stderr);
    }
    void clear() {
        if (shown_) fmt::print(stderr, "\r\033[K");
        shown_ = false;
    }

private:
    bool shown_;
    std::chrono::steady_clock::time_point last_;
};

void check_backend(const std::string& backend) {
    if (backend == "host") return;
    const ErrorPlace place{"command line", "--backend"};
    if (backend == "cuda")
        throw Error(ErrorCode::not_supported, "the CUDA back end is not part of this version",
                    "use --backend host: processes of this machine", place);
    throw Error(ErrorCode::invalid_input, fmt::format("there is no back end '{}'", backend),
                "use --backend host", place);
}

bool agrees(const Plan& plan, const RunReport& report) {
    for (const Agreement& row : agreement(plan, report))
        if (row.planned != row.measured) return false;
    return true;
}

/// Before the run rather than after it.
void check_files(const RunFlags& flags) {
    command::check_writable({flags.trace, flags.scenario.save_scenario});
}

void show(const RunFlags& flags, const Plan& plan, const RunReport& report) {
    if (flags.output.json)
        command::print(run_json(plan, report));
    else if (!flags.output.quiet)
        command::print(run_text(plan, report, command::terminal_style()));
}

/// One rank, started by this program or by another launcher.
int run_rank(const RunFlags& flags, const Plan& plan, const runner::RankEnvironment& environment) {
    // Another launcher has started us; our own has done this already, and once more does no harm.
    if (environment.rank == 0) check_files(flags);
    std::optional<runner::TcpStoreServer> server;
    if (environment.hosts_store) server.emplace(environment.store);
    const runner::WorldTimeouts timeouts;
    runner::TcpStore store(environment.store, timeouts.rendezvous);
    runner::HostWorld world(store, environment.rank, environment.world_size, timeouts);

    const bool speaks = environment.rank == 0 && !flags.output.quiet;
    LossLine losses(speaks && !flags.output.json);
    runner::HostRunOptions options;
    options.on_step = [&](const runner::StepProgress& progress) { losses.show(progress); };
    options.on_warning = [&](const std::string& message) {
        if (speaks) command::print_warning(message);
    };
    options.trace = !flags.trace.empty();
    const runner::HostRun run = run_on_host(plan, world, options);
    losses.clear();
    if (environment.rank == 0)
        command::deliver({command::file_step(flags.scenario.save_scenario,
                                             [&] { return scenario_json(plan.scenario) + "\n"; }),
                          command::file_step(flags.trace, [&] { return run.trace; }),
                          [&] { show(flags, plan, run.report); },
                          [&] {
                              if (run.checkpoint_failure) throw Error(*run.checkpoint_failure);
                          }});
    return agrees(plan, run.report) ? 0 : 1;
}

/// Sums within a shard group come before sums over the replicas, so their rounding is not that of one sum
/// over all ranks in order.
void warn_of_grouped_sums(Plan& plan) {
    const std::uint64_t group = plan.layout.shard_group, ranks = plan.scenario.world_size();
    if (plan.scenario.training.zero_stage == 0 || group == ranks) return;
    plan.warnings.push_back(
        {"grouped_sums",
         fmt::format("gradients are summed over {} ranks of a shard group first, then over {} "
                     "replicas: the parameters are bitwise those of other runs with this "
                     "grouping, not those of ZeRO 0 or of one group",
                     group, ranks / group)});
}

/// What can't be run is blamed on the flag or key that asked for it, as plan and sim do.
Plan plan_of_run(const RunFlags& flags, int ranks, bool starts_ranks) {
    const ScenarioRequest request = request_of_run(flags.scenario, ranks);
    const Scenario scenario = resolve_scenario(request);
    try {
        runner::check_host_run(scenario);
        Plan plan = make_plan(scenario);
        if (starts_ranks) check_memory(plan);
        warn_of_grouped_sums(plan);
        return plan;
    } catch (const Error& error) {
        throw blame(error, request);
    }
}

int start_ranks(const RunFlags& flags, int ranks, const std::vector<std::string>& command) {
    check_files(flags);
    return runner::launch(ranks, command);
}

int run(const RunFlags& flags, const std::vector<std::string>& command) {
    check_backend(flags.backend);
    const auto environment = runner::rank_environment(runner::process_environment());
    try {
        const auto launched = environment ? std::optional(environment->world_size) : std::nullopt;
        const int ranks = ranks_of_run(flags.ranks, flags.scenario, launched);
        const Plan plan = plan_of_run(flags, ranks, !environment);
        return environment ? run_rank(flags, plan, *environment) : start_ranks(flags, ranks, command);
    } catch (const Error& error) {
        if (!environment || !runner::report_to_launcher(error)) throw;
        return error.exit_status();
    }
}

constexpr const char* footer =
    "Exit status: 0 planned and measured memory agree, 1 they don't, 2 the input is wrong, 3 the run "
    "failed or its result could not be written.\n\n"
    "Example: train the tutorial model under ZeRO 3 on four processes of this machine\n"
    "  zeroplan run --model tutorial-mlp --zero 3 --ranks 4\n"
    "The same under torchrun:\n"
    "  torchrun --nproc_per_node 4 --no_python zeroplan-run --model tutorial-mlp --zero 3";

}  // namespace
}  // namespace zeroplan::tool

int main(int argc, char** argv) {
    using namespace zeroplan;
    tool::RunFlags flags;
    CLI::App app("Executes the plan on real ranks and compares what it measures with the plan",
                 "zeroplan run");
    app.add_option("--ranks", flags.ranks, "Processes to start on this machine (1 to 64)")->type_name("N");
    app.add_option("--backend", flags.backend, "host: processes of this machine")->type_name("host|cuda");
    app.add_option("--trace", flags.trace, "Write the last step as a Chrome trace, one process a rank")
        ->type_name("FILE")
        ->group("Output");
    command::add_scenario_flags(app, flags.scenario);
    command::add_output_flags(app, flags.output);
    app.footer(tool::footer);
    const std::vector<std::string> command(argv, argv + argc);
    return command::run_command(app, argc, argv, [&] { return tool::run(flags, command); });
}
