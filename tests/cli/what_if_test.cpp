#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/expect_refused.hpp"
#include "cli/run_program.hpp"

namespace zeroplan::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Arguments = std::vector<std::string>;

std::string content_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

Arguments gpt2(const Arguments& more) {
    Arguments arguments{"sim",    "--model", "gpt2",  "--topology", "dgx-h100",      "--nodes", "2",
                        "--zero", "3",       "--seq", "1024",       "--micro-batch", "8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

class WhatIfCommand : public testing::Test {
protected:
    void SetUp() override {
        if (!std::filesystem::exists(std::string(ZEROPLAN_BIN_DIR) + "/zeroplan-sim"))
            GTEST_SKIP() << "built without SimGrid";
    }
    TemporaryFolder folder_;
};

TEST_F(WhatIfCommand, TellsTheStepWithAndWithoutAStraggler) {
    const json without = json::parse(zeroplan(gpt2({"--json"})).out);
    const Outcome result = zeroplan(gpt2({"--straggler", "5=0.5", "--slow-link", "nic:9=0.5", "--json"}));
    ASSERT_EQ(result.status, 0) << result.err;
    const json report = json::parse(result.out);
    const json& what_if = report["what_if"];
    EXPECT_EQ(what_if["step_time_without_s"], without["step_time_s"]);
    ASSERT_EQ(what_if["causes"].size(), 2U);
    EXPECT_EQ(what_if["causes"][0]["cause"], "rank 5 computes at 0.5 of its speed");
    EXPECT_EQ(what_if["causes"][1]["cause"], "the NIC of rank 9 at 0.5 of its bandwidth");
    EXPECT_GT(what_if["causes"][0]["added_s"], 0);
    EXPECT_GT(what_if["causes"][1]["added_s"], 0);
    EXPECT_EQ(what_if["causes"][1]["step_time_s"], report["step_time_s"]);
    EXPECT_EQ(what_if["waited_for"]["ranks"], "5");
    // The ranks that differ are groups of their own, in memory, times and trace.
    EXPECT_EQ(report["step_times"].size(), 3U);
    EXPECT_EQ(report["memory"]["rank_groups"][1]["ranks"], "5");
    EXPECT_EQ(report["memory"]["peak_device_bytes"], without["memory"]["peak_device_bytes"]);
    EXPECT_EQ(report["scenario"]["what_if"]["stragglers"], json::parse(R"([{"rank": 5, "factor": 0.5}])"));
}

TEST_F(WhatIfCommand, WorksWithEveryEngine) {
    const std::vector<Arguments> engines{
        {"--engine", "deepspeed", "--zero", "3"},
        {"--engine", "fsdp2", "--shard-group", "8"},
        {"--engine", "fsdp2", "--pp", "2", "--grad-accum", "4"},
        {"--engine", "megatron", "--zero", "1", "--tp", "2", "--pp", "2", "--cp", "2", "--grad-accum", "4"},
        {"--engine", "ddp_zero_optimizer"},
    };
    for (const Arguments& engine : engines) {
        SCOPED_TRACE(engine[1]);
        Arguments arguments{"sim", "--model", "gpt2", "--topology", "dgx-h100", "--nodes", "2", "--json"};
        arguments.insert(arguments.end(), engine.begin(), engine.end());
        const Outcome whole = zeroplan(arguments);
        ASSERT_EQ(whole.status, 0) << whole.err;
        arguments.insert(arguments.end(), {"--straggler", "5=0.5"});
        const Outcome slow = zeroplan(arguments);
        ASSERT_EQ(slow.status, 0) << slow.err;
        const json report = json::parse(slow.out);
        EXPECT_EQ(report["what_if"]["step_time_without_s"], json::parse(whole.out)["step_time_s"]);
        EXPECT_GT(report["what_if"]["causes"][0]["added_s"], 0);
        EXPECT_EQ(report["what_if"]["waited_for"]["ranks"], "5");
    }
}

TEST_F(WhatIfCommand, NamesTheStragglerNotThosePeersThatItDelays) {
    const Arguments llama{"sim", "--model", "llama-3-8b", "--json"};
    const Arguments megatron{"--engine", "megatron", "--zero",  "1", "--tp",         "4",
                             "--pp",     "2",        "--nodes", "4", "--grad-accum", "8"};
    const std::vector<std::pair<Arguments, std::string>> slow{
        {megatron, "9=0.7"},   // its tensor-parallel peers are late to reduce gradients with their replicas
        {megatron, "16=0.7"},  // the other stage stands idle for other reasons, too
        {{"--engine", "native", "--nodes", "8", "--zero", "3", "--shard-group", "8"}, "5=0.8"},
        {{"--nodes", "2", "--zero", "3"}, "5=0.8"},
        {{"--engine", "fsdp2", "--nodes", "2", "--tp", "2"}, "5=0.7"},
        {{"--engine", "fsdp2", "--nodes", "2", "--pp", "2", "--grad-accum", "4"}, "9=0.7"},
    };
    for (const auto& [flags, straggler] : slow) {
        SCOPED_TRACE(flags[1] + " " + straggler);
        Arguments arguments = llama;
        arguments.insert(arguments.end(), flags.begin(), flags.end());
        arguments.insert(arguments.end(), {"--straggler", straggler});
        const Outcome result = zeroplan(arguments);
        ASSERT_EQ(result.status, 0) << result.err;
        const json waited = json::parse(result.out)["what_if"]["waited_for"];
        EXPECT_EQ(waited["ranks"], straggler.substr(0, straggler.find('=')));
        EXPECT_GT(waited["waiting_s"], 0);
        EXPECT_GT(2 * waited["last_of"].get<double>(), waited["collectives"].get<double>());
    }
}

TEST_F(WhatIfCommand, SaysInTextWhomEverybodyWaitsFor) {
    const Outcome result = zeroplan(gpt2({"--straggler", "5=0.5"}));
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("What if"));
    EXPECT_THAT(result.out, HasSubstr("rank 5 computes at 0.5 of its speed"));
    EXPECT_THAT(result.out, HasSubstr("everybody waits for rank 5"));
    // It is slower than the others, but holds no more.
    EXPECT_THAT(result.out, HasSubstr("of device memory on every GPU"));
    EXPECT_THAT(result.out, testing::Not(HasSubstr("on the fullest")));
    EXPECT_THAT(zeroplan(gpt2({})).out, testing::Not(HasSubstr("What if")));
}

TEST_F(WhatIfCommand, DrawsTheStragglerApart) {
    const std::string trace = folder_.path("trace.json");
    ASSERT_EQ(zeroplan(gpt2({"--straggler", "5=0.5", "--quiet", "--trace", trace})).status, 0);
    const std::string text = content_of(trace);
    EXPECT_TRUE(json::accept(text));
    EXPECT_THAT(text, HasSubstr("\"ranks 5\""));
    EXPECT_THAT(text, HasSubstr("\"ranks 0-4,6-15\""));
}

TEST_F(WhatIfCommand, IsSavedWithTheScenario) {
    const std::string saved = folder_.path("saved.json"), again = folder_.path("again.json");
    const Arguments flags{"--straggler",
                          "5=0.5",
                          "--slow-link",
                          "node:1=0.5",
                          "--gpu-mtbf",
                          "5y",
                          "--checkpoint-bandwidth",
                          "5e9",
                          "--restart-time",
                          "5m",
                          "--json",
                          "--save-scenario",
                          saved};
    const Outcome first = zeroplan(gpt2(flags));
    ASSERT_EQ(first.status, 0) << first.err;
    const json what_if = json::parse(content_of(saved))["what_if"];
    EXPECT_EQ(what_if["slow_links"], json::parse(R"([{"link": "node:1", "factor": 0.5}])"));
    EXPECT_EQ(what_if["failures"]["gpu_mtbf_s"], 5 * 365 * 86400);
    const Outcome second = zeroplan({"sim", "--scenario", saved, "--json", "--save-scenario", again});
    ASSERT_EQ(second.status, 0) << second.err;
    EXPECT_EQ(content_of(again), content_of(saved));
    EXPECT_EQ(json::parse(second.out)["what_if"], json::parse(first.out)["what_if"]);
    EXPECT_EQ(json::parse(second.out)["failures"], json::parse(first.out)["failures"]);
    // A plan is the same, and keeps what it was given.
    ASSERT_EQ(zeroplan({"plan", "--scenario", saved, "--quiet", "--save-scenario", again}).status, 0);
    EXPECT_EQ(content_of(again), content_of(saved));
}

TEST_F(WhatIfCommand, TellsTheGoodputOfALongRun) {
    const Outcome result =
        zeroplan(gpt2({"--gpu-mtbf", "50000h", "--node-mtbf", "5y", "--checkpoint-bandwidth", "5e9",
                       "--checkpoint-interval", "30m", "--restart-time", "5m"}));
    ASSERT_EQ(result.status, 0) << result.err;
    for (const char* part :
         {"A long run with failures", "as asked", "30 min", "best", "Daly", "Young", "goodput"})
        EXPECT_THAT(result.out, HasSubstr(part));
    const Outcome as_json = zeroplan(
        gpt2({"--gpu-mtbf", "50000h", "--checkpoint-bandwidth", "5e9", "--restart-time", "300", "--json"}));
    const json report = json::parse(as_json.out), failures = report["failures"];
    EXPECT_NEAR(failures["mtbf_s"].get<double>(), 50000 * 3600.0 / 16, 1e-6);
    EXPECT_EQ(failures["intervals"].size(), 3U);
    EXPECT_NEAR(failures["step_time_with_failures_s"].get<double>(),
                report["step_time_s"].get<double>() / failures["goodput"].get<double>(), 1e-12);
}

TEST_F(WhatIfCommand, PutsTwoJobsOnLeafSwitches) {
    const std::string other = folder_.file("other.json", R"({"model": {"preset": "gpt2-xl"},
        "training": {"zero_stage": 3}, "cluster": {"topology": "dgx-h100", "nodes": 2}})");
    const std::string saved = folder_.path("saved.json");
    const Outcome result = zeroplan(gpt2({"--leaf-switches", "2:4", "--placement", "spread", "--background",
                                          other, "--json", "--save-scenario", saved}));
    ASSERT_EQ(result.status, 0) << result.err;
    const json report = json::parse(result.out);
    ASSERT_EQ(report["what_if"]["causes"].size(), 2U);
    EXPECT_GT(report["what_if"]["causes"][0]["added_s"], 0);
    EXPECT_GE(report["what_if"]["causes"][1]["added_s"], 0);
    EXPECT_EQ(report["what_if"]["background"]["name"], "gpt2-xl on 16 GPUs");
    EXPECT_EQ(report["links"].back()["name"], "leaf uplink, fullest");
    // The saved scenario holds the other job, wherever its file is.
    std::filesystem::remove(other);
    const Outcome again = zeroplan({"sim", "--scenario", saved, "--json"});
    ASSERT_EQ(again.status, 0) << again.err;
    EXPECT_EQ(json::parse(again.out)["what_if"], report["what_if"]);
}

TEST_F(WhatIfCommand, TakesAFabric) {
    const std::string saved = folder_.path("saved.json");
    const Outcome result = zeroplan(gpt2({"--fabric", "torus:2:10e9", "--json", "--save-scenario", saved}));
    ASSERT_EQ(result.status, 0) << result.err;
    const json report = json::parse(result.out);
    EXPECT_EQ(report["what_if"]["causes"][0]["cause"], "a torus of 2 nodes, the job packed");
    EXPECT_GT(report["what_if"]["causes"][0]["added_s"], 0);
    EXPECT_EQ(report["links"].back()["name"], "torus link, fullest");
    const Outcome again = zeroplan({"sim", "--scenario", saved, "--json"});
    ASSERT_EQ(again.status, 0) << again.err;
    EXPECT_EQ(json::parse(again.out)["what_if"], report["what_if"]);
}

TEST_F(WhatIfCommand, WarnsOfWhatChangesNothing) {
    const Outcome result = zeroplan(gpt2({"--placement", "spread"}));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("what if without effect"));
}

struct Wrong {
    const char* name;
    Arguments flags;
    std::vector<std::string> expected;
};

TEST_F(WhatIfCommand, BadInputIsOneClearErrorAndExitStatusTwo) {
    const std::vector<Wrong> all{
        {"rank", {"--straggler", "16=0.8"}, {"command line: --straggler", "no rank 16", "0 to 15"}},
        {"no factor", {"--straggler", "5"}, {"command line: --straggler", "5=0.8"}},
        {"zero", {"--straggler", "5=0"}, {"--straggler", "at least 0.001 and at most 1, but is 0"}},
        {"negative", {"--straggler", "5=-1"}, {"--straggler", "at least 0.001", "-1"}},
        {"nan", {"--straggler", "5=nan"}, {"--straggler", "\"nan\""}},
        {"faster", {"--straggler", "5=1.2"}, {"--straggler", "at most 1, but is 1.2"}},
        {"a word", {"--straggler", "rank5=0.8"}, {"--straggler", "\"rank5\""}},
        {"twice", {"--straggler", "5=0.8", "--straggler", "5=0.9"}, {"rank 5 has two factors"}},
        {"link",
         {"--slow-link", "nvlink:3=0.5"},
         {"command line: --slow-link", "nic:RANK", "gpu:RANK", "node:NODE"}},
        {"node", {"--slow-link", "node:2=0.5"}, {"--slow-link", "no node 2", "0 to 1"}},
        {"link factor", {"--slow-link", "nic:3=0"}, {"--slow-link", "at least 0.001"}},
        {"switches", {"--leaf-switches", "4"}, {"--leaf-switches", "oversubscription"}},
        {"ratio", {"--leaf-switches", "4:0.5"}, {"--leaf-switches", "0.5"}},
        {"torus", {"--fabric", "torus:3x2"}, {"--fabric", "has 6 nodes, but the job has 2", "--placement"}},
        {"two fabrics", {"--fabric", "torus:2", "--leaf-switches", "4:2"}, {"--fabric", "leave one out"}},
        {"fabric parts", {"--fabric", "torus:2:1e9:3"}, {"--fabric", "at most 2"}},
        {"placement", {"--placement", "spred"}, {"--placement", "did you mean"}},
        {"list", {"--placement", "0-2"}, {"--placement", "3 nodes are listed, but the job has 2"}},
        {"background", {"--background", "/nowhere.json"}, {"/nowhere.json"}},
        {"no bandwidth", {"--gpu-mtbf", "5y"}, {"--checkpoint-bandwidth"}},
        {"no failures", {"--checkpoint-bandwidth", "5e9"}, {"nothing fails", "--gpu-mtbf"}},
        {"no time",
         {"--gpu-mtbf", "often", "--checkpoint-bandwidth", "5e9"},
         {"command line: --gpu-mtbf", "\"often\""}},
    };
    for (const Wrong& wrong : all) {
        SCOPED_TRACE(wrong.name);
        const Outcome outcome = zeroplan(gpt2(wrong.flags));
        EXPECT_EQ(outcome.status, 2);
        EXPECT_EQ(outcome.out, "");
        for (const std::string& part : wrong.expected) EXPECT_THAT(outcome.err, HasSubstr(part));
    }
}

TEST_F(WhatIfCommand, TakesOneStatementOfTheBackgroundAndNamesItsFile) {
    const std::string own =
        folder_.file("own.json", R"({"model": {"preset": "gpt2"}, "what_if": {"placement": "spread"}})");
    const auto background = [&](const std::string& job) {
        return folder_.file("a.json",
                            R"({"model": {"preset": "gpt2"}, "what_if": {"background": )" + job + "}}");
    };
    expect_refused({"sim", "--scenario",
                    background(R"({"file": "own.json", "scenario": {"model": {"preset": "gpt2"}}})")},
                   {"/what_if/background/scenario", "both \"file\" and \"scenario\"", "keep one of the two"});
    expect_refused({"sim", "--scenario", background(R"({"file": ""})")}, {"/what_if/background/file"});
    expect_refused({"sim", "--model", "gpt2", "--background", own},
                   {own + ": /what_if: the job in the background has a what_if of its own"});
}

}  // namespace
}  // namespace zeroplan::test
