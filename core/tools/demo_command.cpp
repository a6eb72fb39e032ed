#include <cstdlib>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "child_output.hpp"
#include "demo_page.hpp"
#include "subcommand.hpp"
#include "zeroplan/command/output.hpp"
#include "zeroplan/command/scenario_flags.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan::tool {
namespace {

using Arguments = std::vector<std::string>;
constexpr int stage_count = 4;

/// Flags and their values, one after the other.
const Arguments large_job{"--model", "llama-3-8b", "--topology", "dgx-h100", "--nodes", "2"};
const Arguments small_job{"--model", "tutorial-mlp", "--topology", "host", "--gpus", "4"};

Arguments with_stage(Arguments job, int stage) {
    job.insert(job.end(), {"--zero", std::to_string(stage)});
    return job;
}

Plan plan_of(const Arguments& arguments) {
    command::ScenarioFlags flags;
    for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) flags.values[arguments[i]] = arguments[i + 1];
    return command::plan(flags);
}

ComparableReport report_of(const std::string& program, Arguments arguments) {
    arguments.emplace_back("--json");
    return parse_report(output_of_sibling(program, arguments), "zeroplan-" + program);
}

/// How a user starts this program: the script of the source tree says so, since it is what they typed.
std::string program_name() {
    const char* name = std::getenv("ZEROPLAN_COMMAND");
    return name == nullptr ? "zeroplan" : name;
}

std::string command_line(const std::string& subcommand, const Arguments& arguments) {
    return fmt::format("{} {} {}", program_name(), subcommand, fmt::join(arguments, " "));
}

bool is_built(const std::string& program) {
    try {
        sibling_path(program);
        return true;
    } catch (const Error& error) {
        command::print_warning(error.what());
        return false;
    }
}

/// What the stages have in common.
std::string job_in_words(const Plan& plan) {
    const ModelSpec& model = plan.scenario.model;
    const TrainingConfig& training = plan.scenario.training;
    return fmt::format("  {}, {} parameters, {} with {}, {} × {} tokens a GPU and step", model.name,
                       format_count(model.parameter_count()), to_string(training.compute_dtype),
                       to_string(training.optimizer), training.micro_batch_size,
                       format_count(training.sequence_length));
}

void show_large_job(const TextStyle& style) {
    TextPage page(style);
    page.heading("Plan and simulate", ": does Llama 3 8B train on two DGX H100, 16 GPUs?");
    std::vector<PlannedStage> stages;
    const bool simulates = is_built("sim");
    for (int stage = 0; stage < stage_count; ++stage) {
        const Arguments job = with_stage(large_job, stage);
        stages.push_back({plan_of(job), std::nullopt});
        if (simulates) stages.back().simulated = report_of("sim", job);
    }
    page.line(job_in_words(stages.front().plan));
    add_planned_stages(page, stages);
    page.line("  more: " + command_line("sim", with_stage(large_job, 3)), Colour::dim);
    command::print(page.take());
}

void show_small_job(const TextStyle& style) {
    TextPage page(style);
    page.heading("Train", ": the tutorial's model for real, on 4 processes of this machine");
    if (is_built("run")) {
        std::vector<TrainedStage> stages;
        for (int stage = 0; stage < stage_count; ++stage) {
            const Arguments job = with_stage(small_job, stage);
            stages.push_back({parse_report(plan_json(plan_of(job)), "plan"), report_of("run", job)});
        }
        add_losses(page, stages);
        page.heading("Compare", ": memory that was planned and memory that was measured");
        add_measured_memory(page, stages);
    }
    page.line("  more: " + command_line("run", with_stage(small_job, 3)), Colour::dim);
    command::print(page.take());
}

void show_window(const TextStyle& style) {
    TextPage page(style);
    page.heading("Look", ": the same in a window, live on every change");
    page.line(fmt::format("  {} gui", program_name()));
    page.line(fmt::format("  {} gui --screenshot zeroplan.png      without a display", program_name()));
    command::print(page.take());
}

int run_demo() {
    const TextStyle style = command::terminal_style();
    show_large_job(style);
    show_small_job(style);
    show_window(style);
    return 0;
}

}  // namespace

void add_demo(CLI::App& app, Action& chosen) {
    CLI::App* demo =
        app.add_subcommand("demo", "Plans, simulates, trains and compares, to show what zeroplan does");
    demo->footer(
        "Plans and simulates Llama 3 8B under ZeRO 0 to 3 on two DGX H100, then trains a small model on four "
        "processes of this machine and compares the memory that was planned with the memory it took.\n\n"
        "Example:\n  zeroplan demo");
    demo->callback([&chosen] { chosen = run_demo; });
}

}  // namespace zeroplan::tool
