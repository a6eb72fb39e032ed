#include <array>
#include <memory>

#include <fmt/format.h>

#include "nearest.hpp"
#include "subcommand.hpp"
#include "zeroplan/command/output.hpp"
#include "zeroplan/command/output_files.hpp"
#include "zeroplan/command/progress_line.hpp"
#include "zeroplan/command/scenario_flags.hpp"
#include "zeroplan/memory_snapshot.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/plan_views.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan::tool {
namespace {

constexpr std::string_view estimator = "deepspeed-estimator";

/// What --compare-stages alone stands for.
constexpr const char* usual_counts = "auto";

struct PlanFlags {
    command::ScenarioFlags scenario;
    command::OutputFlags output;
    std::string csv, snapshot, against, gpu_counts;
    bool explain = false;
    const CLI::Option* compare_stages = nullptr;
};

void check(const PlanFlags& flags) {
    const std::array<std::string_view, 1> known{estimator};
    if (!flags.against.empty() && flags.against != estimator)
        throw Error(ErrorCode::invalid_input,
                    fmt::format("a plan can't be held against \"{}\"", flags.against),
                    nearest_hint(flags.against, known), {"command line", "--against"});
}

PlanViews views(const Plan& plan, const PlanFlags& flags) {
    PlanViews views;
    if (flags.explain) views.explanation = explain(plan);
    if (*flags.compare_stages)
        views.stages =
            compare_stages(plan, flags.gpu_counts == usual_counts ? std::vector<std::uint64_t>{}
                                                                  : parse_gpu_counts(flags.gpu_counts));
    if (!flags.against.empty()) views.estimator = against_deepspeed_estimator(plan);
    return views;
}

void report(const Plan& plan, const PlanFlags& flags) {
    const PlanViews asked = views(plan, flags);
    if (flags.output.json)
        command::print(plan_views_json(plan, asked));
    else if (!flags.output.quiet && asked.any())
        command::print(plan_views_text(plan, asked, command::terminal_style()));
    else if (!flags.output.quiet)
        command::print(plan_text(plan, command::terminal_style(),
                                 defaults_taken(command::to_request(flags.scenario), plan.scenario)));
}

int run_plan(const PlanFlags& flags) {
    check(flags);
    command::check_writable({flags.csv, flags.snapshot, flags.scenario.save_scenario});
    std::optional<Plan> planned;
    {
        const command::BusyLine busy("planning", flags.output.reports() && !flags.output.json);
        planned = flags.output.reports() ? command::plan_with_remedies(flags.scenario)
                                         : command::plan(flags.scenario);
    }
    const Plan& plan = *planned;
    command::deliver(
        {command::save_step(flags.scenario, plan.scenario),
         command::file_step(flags.csv, [&] { return plan_csv(plan); }),
         command::file_step(flags.snapshot, [&] { return memory_snapshot(plan, plan.memory.worst_group); }),
         [&] { report(plan, flags); }});
    return plan.memory.verdict == Verdict::does_not_fit ? 1 : 0;
}

void add_views(CLI::App& plan, PlanFlags& flags) {
    constexpr const char* group = "Instead of the report";
    plan.add_flag("--explain", flags.explain,
                  "What shrinks with more ranks, the tensors live at the peak, the changes that make it fit")
        ->group(group);
    flags.compare_stages =
        plan.add_option("--compare-stages", flags.gpu_counts,
                        "ZeRO 0 to 3 on numbers of GPUs: those given, or one node and on up to 1024")
            ->expected(0, 1)
            ->default_str(usual_counts)
            ->type_name("[N,N,…]")
            ->group(group);
    plan.add_option("--against", flags.against,
                    "Beside DeepSpeed's own estimate, and why it differs: deepspeed-estimator")
        ->type_name("ESTIMATE")
        ->group(group);
}

}  // namespace

void add_plan(CLI::App& app, Action& chosen) {
    const auto flags = std::make_shared<PlanFlags>();
    CLI::App* plan =
        app.add_subcommand("plan", "Memory of every rank, shard layout and communication; no simulation");
    command::add_scenario_flags(*plan, flags->scenario);
    add_views(*plan, *flags);
    command::add_output_flags(*plan, flags->output);
    plan->add_option("--csv", flags->csv, "Write one line a rank group: bytes by category and counter")
        ->type_name("FILE")
        ->group("Output");
    plan->add_option("--snapshot", flags->snapshot,
                     "Write the fullest rank's allocations as a PyTorch memory snapshot, for memory_viz")
        ->type_name("FILE")
        ->group("Output");
    plan->footer(
        "Exit status: 0 it fits or is marginal, 1 it does not fit, 2 the input is wrong, 3 the result could "
        "not be written.\n\n"
        "Example: does Llama 3 8B train under ZeRO 3 on two DGX H100?\n"
        "  zeroplan plan --model llama-3-8b --topology dgx-h100 --nodes 2 --zero 3 --recompute full\n\n"
        "Example: what would a higher stage or more GPUs do?\n"
        "  zeroplan plan --model llama-3-8b --compare-stages 8,64,512");
    plan->callback([flags, &chosen] { chosen = [flags] { return run_plan(*flags); }; });
}

}  // namespace zeroplan::tool
