#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/run_program.hpp"

namespace zeroplan::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class Compare : public testing::Test {
protected:
    std::string plan(const char* name, std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), {"plan", "--json"});
        return folder_.file(name, zeroplan(arguments).out);
    }
    TemporaryFolder folder_;
};

TEST_F(Compare, AgreesWithItself) {
    const std::string a = plan("a.json", {"--model", "gpt2", "--zero", "1"});
    const Outcome outcome = zeroplan({"compare", a, a});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.out, StartsWith("agree: all "));
}

TEST_F(Compare, ShowsWhereTwoPlansDiffer) {
    const std::string a = plan("a.json", {"--model", "gpt2", "--zero", "1"});
    const std::string b = plan("b.json", {"--model", "gpt2", "--zero", "3"});
    const Outcome text = zeroplan({"compare", a, b});
    EXPECT_EQ(text.status, 1);
    EXPECT_THAT(text.out, StartsWith("disagree: "));
    EXPECT_THAT(text.out, HasSubstr("memory, ranks 0-7"));
    EXPECT_THAT(text.out, HasSubstr("/training/zero_stage"));
    const Outcome machine = zeroplan({"compare", a, b, "--json"});
    EXPECT_EQ(machine.status, 1);
    const json comparison = json::parse(machine.out);
    EXPECT_EQ(comparison["kind"], "compare");
    EXPECT_EQ(comparison["agrees"], false);
    EXPECT_EQ(comparison["a"]["kind"], "plan");
    bool seen = false;
    for (const json& row : comparison["differences"]) {
        if (row["what"] != "parameters" || row["section"] != "memory") continue;
        seen = true;
        EXPECT_EQ(row["ranks"], "0-7");
        EXPECT_GT(row["a"].get<double>(), row["b"].get<double>());
        EXPECT_NEAR(row["relative"].get<double>(), row["b"].get<double>() / row["a"].get<double>() - 1,
                    1e-12);
    }
    EXPECT_TRUE(seen);
    EXPECT_EQ(zeroplan({"compare", a, b, "--tolerance", "1e9", "--quiet"}).out, "");
}

TEST_F(Compare, AgreesWithinTheTolerance) {
    const std::string a = plan("a.json", {"--model", "gpt2", "--micro-batch", "8"});
    json changed = json::parse(zeroplan({"plan", "--json", "--model", "gpt2", "--micro-batch", "8"}).out);
    json& allocated = changed["memory"]["rank_groups"][0]["peak_allocated_bytes"];
    allocated = allocated.get<std::uint64_t>() / 100 * 101;
    const std::string b = folder_.file("b.json", changed.dump());
    EXPECT_EQ(zeroplan({"compare", a, b, "--quiet"}).status, 1);
    EXPECT_EQ(zeroplan({"compare", a, b, "--quiet", "--tolerance", "0.009"}).status, 1);
    EXPECT_EQ(zeroplan({"compare", a, b, "--quiet", "--tolerance", "0.011"}).status, 0);
}

TEST_F(Compare, RefusesWhatIsNoReport) {
    const std::string a = plan("a.json", {"--model", "gpt2"});
    for (
        const auto& [text, expected] :
        {std::pair{R"({"a": 1})", "has no \"kind\""},
         {R"({"kind": "search"})", "kind \"search\" can't be compared"},
         {R"({"kind": "plan", "schema": 7})", "schema 7"},
         {R"({"kind": "plan"})", "no \"scenario\""},
         {R"({"kind": "plan", "scenario": {"training": {}}, "memory": {"rank_groups": []}, "world_size": 8})",
          "/memory/rank_groups: rank 0 is missing here, and the world has 8 ranks"},
         {R"({"kind": "plan", "scenario": {"training": {}}, "memory": {"rank_groups": [{"ranks": "0-x"}]}})",
          "\"x\" is no rank"}}) {
        const Outcome outcome = zeroplan({"compare", a, folder_.file("b.json", text)});
        EXPECT_EQ(outcome.status, 2) << text;
        EXPECT_THAT(outcome.err, HasSubstr(folder_.path("b.json"))) << text;
        EXPECT_THAT(outcome.err, HasSubstr(expected)) << text;
    }
}

}  // namespace
}  // namespace zeroplan::test
