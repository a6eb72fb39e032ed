#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/run_program.hpp"

namespace zeroplan::test {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;

TEST(Command, HelpsWithAnExampleForEverySubcommand) {
    for (const std::vector<std::string>& words : {std::vector<std::string>{"--help"},
                                                  {"plan", "--help"},
                                                  {"compare", "--help"},
                                                  {"list", "--help"}}) {
        const Outcome outcome = zeroplan(words);
        EXPECT_EQ(outcome.status, 0);
        EXPECT_EQ(outcome.err, "");
        EXPECT_THAT(outcome.out, HasSubstr("Example:")) << words.front();
        EXPECT_THAT(outcome.out, HasSubstr("\n  zeroplan ")) << words.front();
    }
}

TEST(Command, SaysItsVersion) {
    const Outcome outcome = zeroplan({"--version"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.out, testing::MatchesRegex("zeroplan [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Command, WithoutWordsShowsItsHelp) {
    const Outcome outcome = zeroplan({});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.out, HasSubstr("Subcommands:"));
}

TEST(List, HasWhatIsBuiltIn) {
    const auto names = [](const char* what) {
        const Outcome outcome = zeroplan({"list", what, "--json"});
        EXPECT_EQ(outcome.status, 0);
        std::vector<std::string> result;
        const json listed = json::parse(outcome.out);
        for (const json& entry : listed["entries"]) result.push_back(entry["name"]);
        return result;
    };
    EXPECT_THAT(names("models"),
                testing::IsSupersetOf({"gpt2", "gpt2-xl", "llama-2-7b", "llama-2-13b", "llama-2-70b",
                                       "llama-3-8b", "llama-3-70b", "llama-3-405b", "mistral-7b",
                                       "qwen2.5-7b", "qwen2.5-32b", "tutorial-mlp"}));
    EXPECT_THAT(names("topologies"), testing::IsSupersetOf({"dgx-a100", "dgx-h100", "rtx-4090x8-pcie"}));
    // One's own machines before the clouds', and a cloud's together.
    const std::string topologies = zeroplan({"list", "topologies"}).out;
    EXPECT_LT(topologies.find("rtx-4090x8-pcie "), topologies.find("p5.48xlarge "));
    EXPECT_LT(topologies.find("p5.48xlarge "), topologies.find("a3-highgpu-8g "));
    EXPECT_THAT(topologies,
                ContainsRegex("p5.48xlarge +AWS: 8 × h100-sxm-80gb, nvswitch; efa at 50 GB/s a GPU"));
    EXPECT_THAT(names("gpus"), testing::IsSupersetOf({"a100-sxm-80gb", "h100-sxm-80gb", "rtx-4090-24gb"}));
    EXPECT_THAT(names("engines"), testing::Contains("native"));
    EXPECT_THAT(zeroplan({"list", "models"}).out, ContainsRegex("llama-3-8b +8,030,261,248 parameters"));
}

TEST(List, NamesOnlyWhatCanBePlanned) {
    const json models = json::parse(zeroplan({"list", "models", "--json"}).out);
    for (const json& entry : models["entries"]) {
        const Outcome plan = zeroplan({"plan", "--model", entry["name"], "--quiet"});
        EXPECT_LE(plan.status, 1) << entry["name"] << plan.err;
        EXPECT_EQ(plan.err, "");
    }
    const json gpus = json::parse(zeroplan({"list", "gpus", "--json"}).out);
    for (const json& entry : gpus["entries"]) {
        const Outcome plan = zeroplan(
            {"plan", "--model", "gpt2", "--gpus", "1", "--dtype", "fp32", "--gpu", entry["name"], "--quiet"});
        EXPECT_LE(plan.status, 1) << entry["name"] << plan.err;
    }
}

}  // namespace
}  // namespace zeroplan::test
