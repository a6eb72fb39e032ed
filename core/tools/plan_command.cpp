#include <memory>

#include "subcommand.hpp"
#include "zeroplan/command/output.hpp"
#include "zeroplan/command/scenario_flags.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan::tool {
namespace {

struct PlanFlags {
    command::ScenarioFlags scenario;
    command::OutputFlags output;
    std::string csv;
};

int run_plan(const PlanFlags& flags) {
    const Plan plan = command::plan(flags.scenario);
    if (!flags.csv.empty()) write_text_file(flags.csv, plan_csv(plan));
    if (flags.output.json)
        command::print(plan_json(plan));
    else if (!flags.output.quiet)
        command::print(plan_text(plan, command::terminal_style(),
                                 defaults_taken(command::to_request(flags.scenario), plan.scenario)));
    return plan.memory.verdict == Verdict::does_not_fit ? 1 : 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& chosen) {
    const auto flags = std::make_shared<PlanFlags>();
    CLI::App* plan =
        app.add_subcommand("plan", "Memory of every rank, shard layout and communication; no simulation");
    command::add_scenario_flags(*plan, flags->scenario);
    command::add_output_flags(*plan, flags->output);
    plan->add_option("--csv", flags->csv, "Write one line a rank group: bytes by category and counter")
        ->type_name("FILE")
        ->group("Output");
    plan->footer(
        "Exit status: 0 it fits or is marginal, 1 it does not fit, 2 the input is wrong.\n\n"
        "Example: does Llama 3 8B train under ZeRO 3 on two DGX H100?\n"
        "  zeroplan plan --model llama-3-8b --topology dgx-h100 --nodes 2 --zero 3 --recompute full");
    plan->callback([flags, &chosen] { chosen = [flags] { return run_plan(*flags); }; });
}

}  // namespace zeroplan::tool
