#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/run_program.hpp"

namespace zeroplan::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

json plan_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "plan");
    arguments.push_back("--json");
    const Outcome outcome = zeroplan(arguments);
    EXPECT_EQ(outcome.err, "");
    return json::parse(outcome.out);
}

TEST(Plan, SaysWhetherItFitsInTheFirstLine) {
    const Outcome fits = zeroplan({"plan", "--model", "gpt2", "--gpus", "1"});
    EXPECT_EQ(fits.status, 0);
    EXPECT_EQ(fits.err, "");
    EXPECT_THAT(fits.out, StartsWith("fits: "));
    EXPECT_THAT(fits.out, HasSubstr("of device memory on the one GPU"));
    const Outcome too_large = zeroplan({"plan", "--model", "llama-3-70b", "--zero", "1"});
    EXPECT_EQ(too_large.status, 1);
    EXPECT_THAT(too_large.out, StartsWith("does not fit: "));
    EXPECT_THAT(too_large.out, HasSubstr("too much"));
}

TEST(Plan, WritesTheContractsJson) {
    const json plan =
        plan_of({"--model", "llama-3-8b", "--nodes", "2", "--zero", "3", "--recompute", "full"});
    EXPECT_EQ(plan["schema"], 1);
    EXPECT_EQ(plan["kind"], "plan");
    EXPECT_EQ(plan["world_size"], 16);
    EXPECT_EQ(plan["model"]["parameters"], 8030261248);
    EXPECT_EQ(plan["model"]["trainable_parameters"], 8030261248);
    EXPECT_EQ(plan["model"]["active_parameters"], 8030261248);
    EXPECT_THAT(plan["rule_set"].get<std::string>(), StartsWith("native"));
    const json& memory = plan["memory"];
    for (const char* key :
         {"peak_allocated_bytes", "peak_active_bytes", "peak_reserved_bytes", "peak_device_bytes",
          "overall_peak_device_bytes", "capacity_bytes", "low_bytes", "high_bytes"})
        EXPECT_TRUE(memory[key].is_number_unsigned()) << key;
    EXPECT_EQ(memory["verdict"], "fits");
    EXPECT_EQ(memory["peak_rank"], 0);
    EXPECT_TRUE(memory["peak_operation"].is_string());
    EXPECT_LE(memory["peak_allocated_bytes"], memory["peak_reserved_bytes"]);
    EXPECT_LE(memory["peak_reserved_bytes"], memory["peak_device_bytes"]);
    ASSERT_EQ(memory["phases"].size(), 5U);
    EXPECT_EQ(memory["phases"][3]["phase"], "steady_step");
    EXPECT_TRUE(memory["host"]["per_node_bytes"].is_number_unsigned());
    EXPECT_TRUE(plan["warnings"].is_array());
    const json& all_gather = plan["communication"]["by_kind"]["all_gather"];
    EXPECT_GT(all_gather["operations"], 0);
    EXPECT_GT(all_gather["bytes_per_rank"], 0);
}

TEST(Plan, AccountsForEveryByteOfThePeak) {
    for (const char* stage : {"0", "1", "2", "3"}) {
        const json plan = plan_of({"--model", "gpt2", "--zero", stage});
        for (const json& group : plan["memory"]["rank_groups"]) {
            std::uint64_t sum = 0;
            EXPECT_EQ(group["at_peak"].size(), 9U);
            for (const json& bytes : group["at_peak"]) sum += bytes.get<std::uint64_t>();
            EXPECT_EQ(sum, group["peak_allocated_bytes"]);
            EXPECT_EQ(group["ranks"], "0-7");
            EXPECT_EQ(group["peak_reserved_bytes"].get<std::uint64_t>() +
                          group["runtime_bytes"].get<std::uint64_t>(),
                      group["peak_device_bytes"]);
        }
    }
}

TEST(Plan, WritesTheScenarioThatMakesTheSamePlan) {
    const TemporaryFolder folder;
    const std::string saved = folder.path("scenario.json");
    const json first = plan_of({"--model", "gpt2", "--zero", "2", "--gpus", "4", "--save-scenario", saved});
    EXPECT_EQ(plan_of({"--scenario", saved}), first);
    // The plan's own scenario is one, too.
    EXPECT_EQ(plan_of({"--scenario", folder.file("again.json", first["scenario"].dump())}), first);
}

TEST(Plan, LetsFlagsOverrideTheFile) {
    const TemporaryFolder folder;
    const std::string file = folder.file(
        "s.json",
        R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": 1}, "cluster": {"gpus_used": 4}})");
    const json plan =
        plan_of({"--scenario", file, "--zero", "2", "--set", "/training/loss=fused", "--gpus", "2"});
    EXPECT_EQ(plan["scenario"]["training"]["zero_stage"], 2);
    EXPECT_EQ(plan["scenario"]["training"]["loss"], "fused");
    EXPECT_EQ(plan["world_size"], 2);
}

TEST(Plan, WritesALineARankGroup) {
    const TemporaryFolder folder;
    const std::string csv = folder.path("plan.csv");
    const Outcome outcome = zeroplan({"plan", "--model", "gpt2", "--quiet", "--csv", csv});
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "");
    const Outcome shown =
        run_program("zeroplan", {"plan", "--model", "gpt2", "--quiet", "--csv", "/dev/stdout"});
    EXPECT_THAT(shown.out, StartsWith("ranks,parameters_bytes,gradients_bytes,"));
    EXPECT_THAT(shown.out, HasSubstr("\n\"0-7\","));
}

TEST(Plan, ShowsViewsInPlaceOfTheReport) {
    const Outcome explained = zeroplan({"plan", "--model", "gpt2", "--zero", "3", "--explain"});
    EXPECT_EQ(explained.status, 0);
    EXPECT_THAT(explained.out, HasSubstr("What shrinks with the number of ranks"));
    const Outcome stages = zeroplan({"plan", "--model", "gpt2", "--compare-stages", "8,32"});
    EXPECT_THAT(stages.out, HasSubstr("\n  32 GPUs "));
    const json plan = plan_of({"--model", "gpt2", "--zero", "2", "--compare-stages", "--against",
                               "deepspeed-estimator", "--explain"});
    EXPECT_EQ(plan["compare_stages"]["gpus"].back(), 1024);
    EXPECT_EQ(plan["against"]["what"], "deepspeed-estimator");
    EXPECT_TRUE(plan["explain"]["live"].is_array());
}

TEST(Plan, RefusesViewsThatItHasNot) {
    const Outcome against = zeroplan({"plan", "--model", "gpt2", "--against", "deepspeed"});
    EXPECT_EQ(against.status, 2);
    EXPECT_THAT(against.err, HasSubstr("deepspeed-estimator"));
    const Outcome counts = zeroplan({"plan", "--model", "gpt2", "--compare-stages", "8,many"});
    EXPECT_EQ(counts.status, 2);
    EXPECT_THAT(counts.err, HasSubstr("8,64,512"));
}

TEST(Plan, WritesAMemorySnapshot) {
    const TemporaryFolder folder;
    const std::string file = folder.path("gpt2.pickle");
    EXPECT_EQ(zeroplan({"plan", "--model", "gpt2", "--quiet", "--snapshot", file}).status, 0);
    const Outcome check = run_program("zeroplan", {"plan", "--model", "tutorial-mlp", "--topology", "host",
                                                   "--quiet", "--snapshot", "/dev/stdout"});
    EXPECT_THAT(check.out, StartsWith("\x80\x02}"));
    EXPECT_THAT(check.out, HasSubstr("device_traces"));
}

TEST(Plan, IsTheSameInEveryLocale) {
    const Outcome plain = zeroplan({"plan", "--model", "gpt2"}, {"LC_ALL=C"});
    const Outcome german = zeroplan({"plan", "--model", "gpt2"}, {"LC_ALL=de_DE.UTF-8", "LANG=de_DE.UTF-8"});
    EXPECT_EQ(plain.out, german.out);
    EXPECT_THAT(plain.out, testing::Not(HasSubstr("\033[")));  // no colour where there is no terminal
}

TEST(Plan, SaysThatItsResultCouldNotBeWritten) {
    const Outcome outcome =
        zeroplan({"plan", "--model", "gpt2", "--quiet", "--save-scenario", "/nonexistent/folder/s.json"});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/folder/s.json: cannot write"));
}

TEST(Plan, ShowsTheIdealFormulasOfThePaper) {
    // 7.5e9 parameters over 64 ranks, 16-bit compute, Adam: resident 120, 31.4, 16.6 and 1.9 GB (ZeRO, figure
    // 1).
    const TemporaryFolder folder;
    const std::string file = folder.file("s.json", R"({
        "model": {"layers": [{"linear": [50000, 50000], "bias": false}, {"linear": [50000, 50000], "bias": false},
                             {"linear": [50000, 50000], "bias": false}], "loss": "mse"},
        "training": {"optimizer": "adam", "compute_dtype": "fp16"},
        "cluster": {"topology": "dgx-h100", "nodes": 8}})");
    const double gigabytes[] = {120, 31.4, 16.6, 1.9};
    for (std::size_t stage = 0; stage < 4; ++stage) {
        const json plan = plan_of({"--scenario", file, "--zero", std::to_string(stage)});
        const json& at_peak = plan["memory"]["rank_groups"][0]["at_peak"];
        double states = 0;
        for (const char* category : {"parameters", "gradients", "master_weights", "optimizer_states"})
            states += at_peak[category].get<double>();
        EXPECT_NEAR(states / 1e9, gigabytes[stage], 0.05) << "stage " << stage;
    }
}

}  // namespace
}  // namespace zeroplan::test
