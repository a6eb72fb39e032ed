#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/run_program.hpp"

namespace zeroplan::test {
namespace {

using testing::HasSubstr;
using Arguments = std::vector<std::string>;

std::string content_of(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Small enough to fit: GPT-2 on one DGX H100.
Arguments gpt2(const Arguments& more) {
    Arguments arguments{"sim", "--model", "gpt2", "--topology", "dgx-h100", "--nodes",
                        "2",   "--zero",  "3",    "--seq",      "1024"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

class Sim : public testing::Test {
protected:
    void SetUp() override {
        if (!std::filesystem::exists(std::string(ZEROPLAN_BIN_DIR) + "/zeroplan-sim"))
            GTEST_SKIP() << "built without SimGrid";
    }
    TemporaryFolder folder_;
};

TEST_F(Sim, TellsTheStepTime) {
    const Outcome result = zeroplan(gpt2({}));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("tokens/s per GPU"));
    EXPECT_THAT(result.out, HasSubstr("coupled flows"));
    EXPECT_EQ(result.err, "");
}

TEST_F(Sim, WritesOneJsonObject) {
    const Outcome result = zeroplan(gpt2({"--json"}));
    EXPECT_EQ(result.status, 0) << result.err;
    const nlohmann::json report = nlohmann::json::parse(result.out);
    EXPECT_EQ(report["kind"], "sim");
    const double step = report["step_time_s"];
    EXPECT_GT(step, 0);
    EXPECT_LT(report["low_s"], step);
    EXPECT_GT(report["high_s"], step);
    EXPECT_NEAR(report["compute_s"].get<double>() + report["exposed_communication_s"].get<double>() +
                    report["bubble_s"].get<double>(),
                step, 1e-9);
    EXPECT_NEAR(report["tokens_per_s_per_gpu"].get<double>(), 1024 / step, 1e-6);
    EXPECT_EQ(report["fidelity"], "coupled flows");
}

TEST_F(Sim, TellsTheCriticalPathAndEachCollectivesAlgorithm) {
    const Outcome result = zeroplan(gpt2({"--json"}));
    ASSERT_EQ(result.status, 0) << result.err;
    const nlohmann::json report = nlohmann::json::parse(result.out);
    double path = 0, exposed = 0;
    for (const auto& phase : report["critical_path"]) {
        path += phase["seconds"].get<double>();
        for (const auto& seconds : phase["exposed_s"]) exposed += seconds.get<double>();
    }
    EXPECT_NEAR(path, report["step_time_s"].get<double>(), 1e-9 * path);
    for (const auto& seconds : report["exposed_by_cause"]) exposed -= seconds.get<double>();
    EXPECT_NEAR(exposed, 0, 1e-12);
    ASSERT_FALSE(report["collectives"].empty());
    for (const auto& collective : report["collectives"]) EXPECT_EQ(collective["algorithm"], "ring");
}

TEST_F(Sim, ForcesAProtocol) {
    const auto protocols = [&](std::vector<std::string> more) {
        more.push_back("--json");
        const Outcome result = zeroplan(gpt2(more));
        EXPECT_EQ(result.status, 0) << result.err;
        const nlohmann::json report = nlohmann::json::parse(result.out);
        std::set<std::string> used;
        for (const auto& collective : report["collectives"]) used.insert(collective["protocol"]);
        return used;
    };
    EXPECT_NE(protocols({}), std::set<std::string>{"ll"});
    EXPECT_EQ(protocols({"--nccl-proto", "ll"}), std::set<std::string>{"ll"});
}

TEST_F(Sim, SaysWhereAForcedAlgorithmFitsNoCollective) {
    const Outcome result = zeroplan(gpt2({"--nccl-algo", "tree"}));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("cluster.nccl forces tree, which"));
    EXPECT_EQ(zeroplan(gpt2({"--nccl-algo", "rings"})).status, 2);
    for (const char* flag : {"--nccl-algo", "--nccl-proto"}) {
        const Outcome null = zeroplan(gpt2({flag, "null"}));
        EXPECT_EQ(null.status, 2) << flag;
        EXPECT_THAT(null.err, HasSubstr("cannot be \"null\"")) << flag;
    }
}

TEST_F(Sim, QuietPrintsNothing) {
    const Outcome result = zeroplan(gpt2({"--quiet"}));
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.out + result.err, "");
}

TEST_F(Sim, WritesATraceAndATable) {
    const std::string trace = folder_.path("trace.json"), table = folder_.path("step.csv");
    const Outcome result = zeroplan(gpt2({"--quiet", "--trace", trace, "--csv", table}));
    ASSERT_EQ(result.status, 0) << result.err;
    const nlohmann::json events = nlohmann::json::parse(content_of(trace))["traceEvents"];
    EXPECT_GT(events.size(), 100U);
    EXPECT_THAT(content_of(table),
                HasSubstr("rank_group,section,iteration,stream,operation,start_s,end_s,critical\n"));
}

TEST_F(Sim, ReportsTheTimeOfWhatDoesNotFit) {
    const Outcome result = zeroplan({"sim", "--model", "llama-3-70b", "--topology", "dgx-h100", "--json"});
    EXPECT_EQ(result.status, 1) << result.err;
    const nlohmann::json report = nlohmann::json::parse(result.out);
    EXPECT_EQ(report["memory"]["verdict"], "does_not_fit");
    EXPECT_GT(report["step_time_s"], 0);
}

TEST_F(Sim, NamesTheDtypeThatAGpuLacks) {
    const Outcome result = zeroplan(gpt2({"--gpu", "v100-sxm-32gb"}));
    EXPECT_EQ(result.status, 2) << result.out;
    EXPECT_THAT(result.err, HasSubstr("compute_dtype"));
    EXPECT_THAT(result.err, HasSubstr("bf16"));
    EXPECT_THAT(result.err, HasSubstr("hint: "));
}

TEST_F(Sim, BlamesTheFlagThatAskedForWhatIsNotModelled) {
    const Outcome planned = zeroplan(gpt2({"--tp", "2"}));  // the native engine can't plan it
    EXPECT_EQ(planned.status, 2);
    EXPECT_THAT(planned.err, HasSubstr("command line: --tp: "));
    const Outcome timed = zeroplan(
        {"sim", "--model", "gpt2", "--engine", "deepspeed", "--zero", "0", "--offload-optimizer", "cpu"});
    EXPECT_EQ(timed.status, 2);
    EXPECT_THAT(timed.err, HasSubstr("command line: --offload-optimizer: "));
}

TEST_F(Sim, SaysWhereItCannotWrite) {
    const Outcome result = zeroplan(gpt2({"--trace", "/nowhere/trace.json"}));
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, HasSubstr("/nowhere"));
}

TEST_F(Sim, SaysThatOneGpuGivesTheTunerNoRows) {
    const Outcome one =
        zeroplan({"sim", "--model", "gpt2", "--gpus", "1", "--nccl-tuner", folder_.path("t.csv")});
    EXPECT_THAT(one.out, HasSubstr("one GPU has no collectives"));
    EXPECT_THAT(zeroplan(gpt2({"--nccl-tuner", folder_.path("t.csv")})).out,
                testing::Not(HasSubstr("one GPU has no collectives")));
}

}  // namespace
}  // namespace zeroplan::test
