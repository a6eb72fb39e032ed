#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/text_page.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/report.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

Plan plan_of(const char* scenario) {
    return make_plan(resolve_scenario({"", scenario, {}}));
}

Plan tutorial_plan() {
    return plan_of(R"({"model": {"preset": "tutorial-mlp"}, "training": {"zero_stage": 2},
                       "cluster": {"topology": "host", "gpus_used": 2}})");
}

RunReport run_as_planned(const Plan& plan) {
    RunReport report{
        .backend = "host", .world_size = 2, .losses = {2, 1.5, 1}, .step_times_s = {0.3, 0.1, 0.2}};
    report.final_parameters_sha256 = "ab12";
    report.wall_s = 1;
    const RankGroup& group = plan.rank_groups.front();
    for (std::uint64_t rank = 0; rank < 2; ++rank)
        report.ranks.push_back({rank, group.steady.allocated, group.steady.at_peak, group.resident,
                                Bytes{70ULL << 20}, Bytes{69ULL << 20}, std::nullopt});
    return report;
}

SimReport sim_of_one_group() {
    SimReport report;
    StepTimeline step;
    step.step_time_s = 2;
    step.compute_s = 1.5;
    step.communication_s = 1;
    step.exposed_communication_s = 0.4;
    step.bubble_s = 0.1;
    step.low_s = 1.8;
    step.high_s = 2.4;
    step.fidelity = "coupled flows";
    report.rank_groups = {step};
    report.closed_form = step;
    report.throughput = {4096, 4e14, 0.4};
    report.links = {{"nic", 16, 50e9, 2e9, 0.02}};
    report.wall_s = 0.01;
    return report;
}

TEST(PlanText, HasEveryPart) {
    const std::string text =
        plan_text(plan_of(R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": 3}})"));
    EXPECT_THAT(text, StartsWith("fits: "));
    for (const char* part :
         {"GiB headroom\n", "gpt2, 124,439,808 parameters", "ZeRO 3 over 8 ranks",
          "Peak of a steady step, ranks 0-7", "  during \"", "gathered parameters", "allocated", "= reserved",
          "= device", "capacity", "Peak of each phase", "steady step", "Ranks, all the same", "Host RAM",
          "Communication of a step", "all gather", "Where the figures come from", "exact: ", "assumed: "})
        EXPECT_THAT(text, HasSubstr(part));
}

TEST(PlanText, NamesTheDefaultsThatTheScenarioTook) {
    const ScenarioRequest request{
        "", R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": 3, "optimizer": "adam"}})", {}};
    const Scenario scenario = resolve_scenario(request);
    const auto defaults = defaults_taken(request, scenario);
    EXPECT_THAT(defaults, testing::Contains("sequence_length 1,024 (the model's maximum)"));
    EXPECT_THAT(defaults, testing::Contains("compute_dtype bf16"));
    EXPECT_THAT(defaults, testing::Contains("topology dgx-h100"));
    EXPECT_THAT(defaults, testing::Not(testing::Contains(StartsWith("zero_stage"))));
    EXPECT_THAT(defaults, testing::Not(testing::Contains(StartsWith("optimizer"))));
    EXPECT_THAT(plan_text(make_plan(scenario), {}, defaults), HasSubstr("defaults  engine native, "));
}

TEST(PlanText, NamesTheKernelsThatAnEngineStartsFromAndTheFlagThatChangesThem) {
    const auto defaults = [](const std::string& training) {
        const ScenarioRequest request{
            "", R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": 3)" + training + "}}", {}};
        return defaults_taken(request, resolve_scenario(request));
    };
    const auto kernels = [](const char* word) { return testing::Contains(StartsWith(word)); };
    EXPECT_THAT(defaults(R"(, "engine": "deepspeed")"), kernels("kernels eager (PyTorch's own"));
    EXPECT_THAT(defaults(R"(, "engine": "deepspeed")"),
                testing::Contains(HasSubstr("--set /training/kernels=fused")));
    EXPECT_THAT(defaults(""), testing::Contains("kernels fused"));
    EXPECT_THAT(defaults(R"(, "engine": "deepspeed", "kernels": "fused")"), testing::Not(kernels("kernels")));
}

TEST(PlanText, ShowsRemediesBelowTheVerdict) {
    Plan plan = plan_of(R"({"model": {"preset": "gpt2"}})");
    EXPECT_THAT(plan_text(plan), testing::Not(HasSubstr("makes it fit")));
    plan.remedies = {{.flags = "--zero 2",
                      .price = "more is sharded",
                      .overall_peak_device = Bytes{1ULL << 30},
                      .capacity = Bytes{2ULL << 30},
                      .verdict = Verdict::fits,
                      .step_time_ratio = 1.5}};
    const std::string text = plan_text(plan);
    EXPECT_THAT(text, HasSubstr("each of these makes it fit, the cheapest first:"));
    EXPECT_THAT(text, HasSubstr("  --zero 2  1.00 GiB of 2.00 GiB  more is sharded"));
    plan.remedies.push_back(plan.remedies[0]);
    plan.remedies[1].verdict = Verdict::marginal;
    EXPECT_THAT(plan_text(plan), HasSubstr("each of these makes it fit or, where it says so, may fit"));
    EXPECT_THAT(plan_text(plan), HasSubstr("  --zero 2  1.00 GiB of 2.00 GiB  may fit; more is sharded"));
    plan.remedies.erase(plan.remedies.begin());
    EXPECT_THAT(plan_text(plan), HasSubstr("no change makes it fit for sure; with each of these it may:"));
    plan.remedies[0].verdict = Verdict::does_not_fit;
    EXPECT_THAT(plan_text(plan), HasSubstr("no change and no two together make it fit"));
}

TEST(PlanText, ShowsTheLargestSizesThatCanBePlanned) {
    const Plan plan =
        plan_of(R"({"model": {"preset": "gpt2"}, "training": {"micro_batch_size": 1000000007}})");
    EXPECT_EQ(plan.memory.verdict, Verdict::does_not_fit);
    EXPECT_THAT(plan_text(plan), StartsWith("does not fit: "));
}

TEST(PlanText, StaysWithinItsWidth) {
    const Plan plan = plan_of(R"({"model": {"preset": "llama-3-8b"}, "training": {"zero_stage": 3},
                                  "cluster": {"topology": "dgx-h100", "nodes": 2}})");
    for (const std::size_t width : {80U, 100U}) {
        const std::string text = plan_text(plan, {.colour = false, .width = width});
        std::size_t begin = text.find('\n') + 1;  // the verdict is one line, however long
        while (begin < text.size()) {
            const std::size_t end = text.find('\n', begin);
            const std::string line = text.substr(begin, end - begin);
            EXPECT_LE(display_width(line), width) << line;
            EXPECT_FALSE(line.ends_with(' ')) << line;
            begin = end + 1;
        }
    }
}

TEST(PlanText, HoldsNoEscapesUnlessAsked) {
    const Plan plan = tutorial_plan();
    EXPECT_THAT(plan_text(plan), testing::Not(HasSubstr("\033")));
    EXPECT_THAT(plan_text(plan, {.colour = true}), HasSubstr("\033[1;32mfits: "));
}

TEST(PlanCsv, HasARowForEveryRankGroup) {
    const Plan plan = tutorial_plan();
    const std::string csv = plan_csv(plan);
    EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')),
              1 + plan.rank_groups.size());
    EXPECT_THAT(csv, HasSubstr("\n\"0-1\","));
}

TEST(SimText, TellsWhereTheTimeGoes) {
    const std::string text = sim_text(tutorial_plan(), sim_of_one_group());
    EXPECT_THAT(text, StartsWith("fits: "));
    for (const char* part :
         {"step 2.000 s: 4,096 samples/s per GPU, MFU 40.0 %", "interval 1.800 s to 2.400 s", "coupled flows",
          "75.0 %", "20.0 %", "nic", "50 GB/s", "MFU counts matrix products", "summed"})
        EXPECT_THAT(text, HasSubstr(part));
}

TEST(SimText, NeedsARankGroup) {
    EXPECT_THROW(sim_text(tutorial_plan(), SimReport{}), Error);
    EXPECT_THROW(sim_json(tutorial_plan(), SimReport{}), Error);
}

TEST(SimJson, HasTheContractsKeys) {
    const json sim = json::parse(sim_json(tutorial_plan(), sim_of_one_group()));
    EXPECT_EQ(sim["kind"], "sim");
    EXPECT_EQ(sim["memory"]["verdict"], "fits");  // the plan's keys stand beside
    EXPECT_EQ(sim["step_time_s"], 2.0);
    EXPECT_EQ(sim["tokens_per_s_per_gpu"], 4096.0);
    EXPECT_EQ(sim["mfu"], 0.4);
    EXPECT_EQ(sim["compute_s"], 1.5);
    EXPECT_EQ(sim["communication_s"], 1.0);
    EXPECT_EQ(sim["exposed_communication_s"], 0.4);
    EXPECT_EQ(sim["bubble_s"], 0.1);
    EXPECT_EQ(sim["low_s"], 1.8);
    EXPECT_EQ(sim["high_s"], 2.4);
    EXPECT_EQ(sim["fidelity"], "coupled flows");
    EXPECT_EQ(sim["wall_s"], 0.01);
}

TEST(RunText, SaysThatPlannedIsMeasured) {
    const Plan plan = tutorial_plan();
    const std::string text = run_text(plan, run_as_planned(plan));
    EXPECT_THAT(text, StartsWith("Training completed successfully: 3 steps on 2 ranks (host), loss 2 → 1\n"));
    EXPECT_THAT(text, HasSubstr("planned = measured in every category on every rank"));
    EXPECT_THAT(text, HasSubstr("ranks 0-1"));
    EXPECT_THAT(text, HasSubstr("passes on every rank, within 3 % or 8 MiB"));
    EXPECT_THAT(text, HasSubstr("step 200 ms (median"));
}

TEST(RunText, ShowsTheMeanOfEveryEpoch) {
    const Plan plan = tutorial_plan();
    RunReport report = run_as_planned(plan);
    report.losses = {4, 2, 2, 1, 0.5};  // two epochs of two batches, and one that was ended early
    report.steps_per_epoch = 2;
    const std::string text = run_text(plan, report);
    EXPECT_THAT(text, HasSubstr("Loss, mean of epochs 1 to 3, 2 steps each"));
    EXPECT_THAT(text, HasSubstr("3 in the first epoch, 0.5 in the last"));
    report.steps_per_epoch = 5;
    EXPECT_THAT(run_text(plan, report), HasSubstr("Loss, steps 1 to 5"));
}

TEST(RunText, ShowsADifferenceToTheByte) {
    const Plan plan = tutorial_plan();
    RunReport report = run_as_planned(plan);
    report.ranks[1].at_peak[Category::activations] += Bytes{512};
    report.ranks[1].peak_allocated += Bytes{512};
    report.ranks[1].process_peak = Bytes{90ULL << 20};
    const std::string text = run_text(plan, report);
    EXPECT_THAT(text, HasSubstr("planned and measured differ in 1 of 18 figures"));
    EXPECT_THAT(text, HasSubstr("+512 B"));
    EXPECT_THAT(text, HasSubstr("fails, off by more than 3 % and 8 MiB on some rank"));
    EXPECT_THAT(text, HasSubstr("passes"));
    EXPECT_THAT(text, HasSubstr("too far off"));
}

TEST(RunText, RefusesARankThatThePlanHasNot) {
    const Plan plan = tutorial_plan();
    RunReport report = run_as_planned(plan);
    report.ranks[0].rank = 17;
    EXPECT_THROW(run_text(plan, report), Error);
}

TEST(RunJson, HasTheContractsKeys) {
    const Plan plan = tutorial_plan();
    const json run = json::parse(run_json(plan, run_as_planned(plan)));
    EXPECT_EQ(run["kind"], "run");
    EXPECT_EQ(run["backend"], "host");
    EXPECT_EQ(run["world_size"], 2);
    EXPECT_EQ(run["losses"], json({2.0, 1.5, 1.0}));
    EXPECT_EQ(run["step_times_s"].size(), 3U);
    EXPECT_EQ(run["final_parameters_sha256"], "ab12");
    EXPECT_EQ(run["plan"]["kind"], "plan");
    ASSERT_EQ(run["ranks"].size(), 2U);
    EXPECT_EQ(run["ranks"][1]["rank"], 1);
    EXPECT_EQ(run["ranks"][1]["at_peak"].size(), 9U);
    EXPECT_TRUE(run["ranks"][1]["device_peak_bytes"].is_null());
    ASSERT_EQ(run["agreement"].size(), 18U);
    for (const json& row : run["agreement"]) EXPECT_EQ(row["planned_bytes"], row["measured_bytes"]);
}

// Links that a class of slow ranks has at a fraction of their rate: loads stand in their row, too, twice as
// high.
TEST(SimText, ShowsTheLoadOfSlowLinks) {
    const Plan plan = plan_of(R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": 3},
                                  "cluster": {"topology": "dgx-h100", "nodes": 2}})");
    SimReport report = sim_of_one_group();
    report.rank_groups = closed_form_steps(plan);
    report.links = {
        {"nic", 15, 50e9, 2e9, 0.02}, {"nic at 0.5", 1, 25e9, 2e9, 0.04}, {"spine", 1, 1e9, 1, 1}};
    const std::string text = sim_text(plan, report);
    const auto row = [&](const std::string& name) {
        const std::size_t begin = text.find("\n  " + name + " ");
        return begin == std::string::npos ? name : text.substr(begin, text.find('\n', begin + 1) - begin);
    };
    for (const char* name : {"nic", "nic at 0.5"}) EXPECT_THAT(row(name), HasSubstr("\u2582")) << text;
    EXPECT_THAT(row("spine"), Not(HasSubstr("\u2582")));
}

}  // namespace
}  // namespace zeroplan
