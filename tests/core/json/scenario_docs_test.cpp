#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/cluster_json.hpp"
#include "json/run_json.hpp"
#include "json/training_json.hpp"
#include "json/what_if_json.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/score.hpp"

// docs/scenario.md is what users have to go by: its examples are read, and no key is missing there.
namespace zeroplan {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string docs = std::string(ZEROPLAN_SOURCE_DIR) + "/docs/";

std::vector<std::string> json_blocks(const std::string& markdown) {
    const std::string begin = "```json\n", end = "```";
    std::vector<std::string> blocks;
    for (std::size_t at = markdown.find(begin); at != std::string::npos; at = markdown.find(begin, at)) {
        at += begin.size();
        blocks.push_back(markdown.substr(at, markdown.find(end, at) - at));
    }
    return blocks;
}

TEST(ScenarioDocs, HaveExamplesThatArePlanned) {
    const auto blocks = json_blocks(read_text_file(docs + "scenario.md"));
    EXPECT_GE(blocks.size(), 6U);
    for (const std::string& block : blocks)
        EXPECT_NO_THROW(make_plan(resolve_scenario({"", block, {}}))) << block;
}

TEST(ScenarioDocs, NameEveryKey) {
    const std::string text = read_text_file(docs + "scenario.md");
    for (const auto& keys : {training_keys(), cluster_keys(), run_keys(), what_if_keys()})
        for (const std::string_view key : keys) EXPECT_THAT(text, HasSubstr("`" + std::string(key) + "`"));
}

TEST(ScenarioExamples, ArePlanned) {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(docs + "examples")) {
        if (entry.path().extension() != ".json") continue;
        ++count;
        EXPECT_EQ(make_plan(resolve_scenario({entry.path().string(), "", {}})).memory.verdict, Verdict::fits)
            << entry.path();
    }
    EXPECT_GE(count, 2U);
}

TEST(ScenarioExamples, HaveMeasuredCasesThatAreScored) {
    const std::string file = docs + "examples/cases.jsonl";
    const ScoreReport report = score(read_measured_cases(read_text_file(file), file));
    EXPECT_GE(report.rows.size(), 4U);
    for (const Refusal& refusal : report.refused) EXPECT_TRUE(refusal.time_only) << refusal.why;
}

}  // namespace
}  // namespace zeroplan
