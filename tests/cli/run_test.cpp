#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/child_program.hpp"

namespace zeroplan::test {
namespace {

using nlohmann::json;

/// The test of a program that this build leaves out.
#define SKIP_WITHOUT_RUNNER()                                                      \
    if (!std::filesystem::exists(std::string(ZEROPLAN_BIN_DIR) + "/zeroplan-run")) \
    GTEST_SKIP() << "zeroplan-run is not built"

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

json report_of(const std::vector<std::string>& arguments) {
    const Outcome result = run_program("zeroplan-run", arguments + std::vector<std::string>{"--json"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return json::parse(result.out, nullptr, false);
}

void expect_agreement(const json& report) {
    for (const json& row : report.at("agreement"))
        EXPECT_EQ(row.at("planned_bytes"), row.at("measured_bytes")) << row;
}

class RunTutorial : public testing::TestWithParam<int> {};

TEST_P(RunTutorial, GivesTheSameParametersAtEveryStage) {
    SKIP_WITHOUT_RUNNER();
    json first;
    for (const char* stage : {"0", "1", "2", "3"}) {
        SCOPED_TRACE(std::string("stage ") + stage);
        const json report = report_of({"--model", "tutorial-mlp", "--zero", stage, "--ranks",
                                       std::to_string(GetParam()), "--set", "/run/epochs=2"});
        if (first.is_null()) first = report;
        EXPECT_EQ(report.at("final_parameters_sha256"), first.at("final_parameters_sha256"));
        EXPECT_EQ(report.at("losses"), first.at("losses"));
        EXPECT_EQ(report.at("ranks").size(), static_cast<std::size_t>(GetParam()));
        expect_agreement(report);
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RunTutorial, testing::Values(1, 2, 3, 4, 8));

TEST(Run, SaysThatTrainingCompleted) {
    SKIP_WITHOUT_RUNNER();
    const Outcome result = run_program(
        "zeroplan-run", {"--model", "tutorial-mlp", "--zero", "3", "--ranks", "2", "--set", "/run/epochs=1"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_NE(result.out.find("Training completed successfully"), std::string::npos) << result.out;
    EXPECT_EQ(
        run_program("zeroplan-run", {"--model", "tutorial-mlp", "--quiet", "--set", "/run/epochs=1"}).out,
        "");
}

// A launcher or --ranks says otherwise; plan reads the same file as it stands.
TEST(Run, HasTheRanksThatItsScenarioStates) {
    SKIP_WITHOUT_RUNNER();
    const TemporaryFolder folder;
    const auto scenario = [&](const char* gpus) {
        return folder.file("stated.json", std::string(R"({"model": {"preset": "tutorial-mlp"},
            "training": {"zero_stage": 2}, "run": {"epochs": 1},
            "cluster": {"topology": "host", "gpus_used": )") +
                                              gpus + "}}");
    };
    EXPECT_EQ(report_of({"--scenario", scenario("3")}).at("ranks").size(), 3U);
    EXPECT_EQ(report_of({"--scenario", scenario("3"), "--ranks", "2"}).at("ranks").size(), 2U);
    const Outcome refused = run_program("zeroplan-run", {"--scenario", scenario("100000")});
    EXPECT_EQ(refused.status, 2);
    EXPECT_NE(refused.err.find("the scenario is of 100000 GPUs"), std::string::npos) << refused.err;
}

struct Stack {
    const char* stage;
    const char* dtype;
};
class RunOf64MiB : public testing::TestWithParam<Stack> {};

// The operating system knows nothing of the arena: its own peak has to say the same.
TEST_P(RunOf64MiB, MovesTheProcessesPeakAsPlanned) {
    SKIP_WITHOUT_RUNNER();
    const TemporaryFolder folder;
    const std::string scenario = folder.file("stack.json", R"({
        "model": {"loss": "mse", "layers": [{"linear": [1024, 4096], "activation": "relu"},
                                            {"linear": [4096, 2048], "activation": "gelu"},
                                            {"linear": [2048, 1024]}]},
        "training": {"optimizer": "adam", "micro_batch_size": 16},
        "run": {"steps": 2, "data": "synthetic:100x1024"}})");
    const json report = report_of(
        {"--scenario", scenario, "--zero", GetParam().stage, "--dtype", GetParam().dtype, "--ranks", "2"});
    expect_agreement(report);
    for (const json& rank : report.at("ranks")) {
        const double planned = rank.at("process_peak_planned_bytes").get<double>();
        const double measured = rank.at("process_peak_bytes").get<double>();
        EXPECT_GE(planned, 64.0 * (1 << 20));
        EXPECT_NEAR(measured, planned, std::max(0.03 * planned, 8.0 * (1 << 20)));
    }
}

INSTANTIATE_TEST_SUITE_P(Stages, RunOf64MiB,
                         testing::Values(Stack{"0", "fp32"}, Stack{"1", "bf16"}, Stack{"2", "fp32"},
                                         Stack{"3", "bf16"}),
                         [](const auto& one) {
                             return std::string("stage_") + one.param.stage + "_" + one.param.dtype;
                         });

const std::vector<std::string> long_run{"--model", "tutorial-mlp", "--zero",
                                        "3",       "--set",        "/run/epochs=1000000"};

TEST(Run, NamesTheRankThatWasKilled) {
    SKIP_WITHOUT_RUNNER();
    const TemporaryFolder folder;
    ChildProgram program(
        "zeroplan-run",
        long_run + std::vector<std::string>{"--ranks", "3", "--save-scenario", folder.path("s.json")});
    const auto ranks = wait_for_children(program.pid(), 3);
    kill(ranks[1], SIGKILL);
    const Outcome result = program.wait();
    EXPECT_EQ(result.status, 3);
    EXPECT_NE(result.err.find("rank 1 (process " + std::to_string(ranks[1]) + ") was killed by signal 9"),
              std::string::npos)
        << result.err;
    for (const pid_t rank : ranks) EXPECT_FALSE(exists(rank));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path("")));
}

TEST(Run, SavesItsScenario) {
    SKIP_WITHOUT_RUNNER();
    const TemporaryFolder folder;
    const Outcome result =
        run_program("zeroplan-run", {"--model", "tutorial-mlp", "--ranks", "2", "--set", "/run/steps=2",
                                     "--quiet", "--save-scenario", folder.path("s.json")});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(zeroplan({"plan", "--scenario", folder.path("s.json"), "--quiet"}).status, 0);
}

TEST(Run, EndsWithItsRanksOnCtrlC) {
    SKIP_WITHOUT_RUNNER();
    ChildProgram program("zeroplan-run", long_run + std::vector<std::string>{"--ranks", "2"});
    const auto ranks = wait_for_children(program.pid(), 2);
    kill(program.pid(), SIGINT);
    EXPECT_EQ(program.wait().status, 128 + SIGINT);
    for (const pid_t rank : ranks) EXPECT_FALSE(exists(rank));
}

/// As torchrun starts them.
std::vector<std::string> rank_of(int rank, int world, int port) {
    return {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(world),
            "LOCAL_RANK=" + std::to_string(rank), "MASTER_ADDR=127.0.0.1",
            "MASTER_PORT=" + std::to_string(port)};
}
/// Tests may run side by side.
int port_of_test(int number) {
    return 20000 + static_cast<int>(getpid()) % 10000 + number * 10000;
}

TEST(Run, JoinsRanksThatALauncherStarted) {
    SKIP_WITHOUT_RUNNER();
    const std::vector<std::string> arguments{"--model", "tutorial-mlp", "--zero",       "2",
                                             "--json",  "--set",        "/run/epochs=2"};
    const int port = port_of_test(0);
    ChildProgram second("zeroplan-run", arguments, rank_of(1, 2, port));
    ChildProgram first("zeroplan-run", arguments, rank_of(0, 2, port));
    const Outcome of_first = first.wait(), of_second = second.wait();
    EXPECT_EQ(of_first.status, 0) << of_first.err;
    EXPECT_EQ(of_second.status, 0) << of_second.err;
    EXPECT_EQ(of_second.out, "");
    const json started_here =
        report_of({"--model", "tutorial-mlp", "--zero", "0", "--ranks", "2", "--set", "/run/epochs=2"});
    EXPECT_EQ(json::parse(of_first.out).at("final_parameters_sha256"),
              started_here.at("final_parameters_sha256"));
}

TEST(Run, NamesTheRankThatDiedUnderALauncher) {
    SKIP_WITHOUT_RUNNER();
    const int port = port_of_test(1);
    ChildProgram first("zeroplan-run", long_run, rank_of(0, 3, port));
    ChildProgram second("zeroplan-run", long_run, rank_of(1, 3, port));
    ChildProgram third("zeroplan-run", long_run, rank_of(2, 3, port));
    std::this_thread::sleep_for(std::chrono::seconds(2));  // so that it is in the middle of its steps
    kill(second.pid(), SIGKILL);
    for (ChildProgram* survivor : {&first, &third}) {
        const Outcome result = survivor->wait();
        EXPECT_EQ(result.status, 3);
        EXPECT_NE(result.err.find("rank 1 (process " + std::to_string(second.pid()) + ")"), std::string::npos)
            << result.err;
    }
}

TEST(Run, WritesATraceOfEveryRank) {
    SKIP_WITHOUT_RUNNER();
    const TemporaryFolder folder;
    const std::string path = folder.path("trace.json");
    report_of({"--model", "tutorial-mlp", "--zero", "3", "--ranks", "2", "--set", "/run/epochs=1", "--trace",
               path});
    const json trace = json::parse(std::ifstream(path));
    std::map<std::pair<int, int>, int> spans;  // by process and thread
    for (const json& event : trace.at("traceEvents")) {
        if (event.at("ph") != "X") continue;
        EXPECT_GE(event.at("ts").get<double>(), 0);
        EXPECT_GE(event.at("dur").get<double>(), 0);
        ++spans[{event.at("pid"), event.at("tid")}];
    }
    EXPECT_EQ(spans.size(), 6U);  // two ranks, three streams
}

TEST(Run, WritesACheckpointThatIsPlannedAsWhatItTrained) {
    SKIP_WITHOUT_RUNNER();
    const TemporaryFolder folder;
    const std::string scenario = folder.file("stack.json", R"({
        "model": {"loss": "cross_entropy", "layers": [{"linear": [20, 30], "activation": "gelu"},
                                                      {"linear": [30, 5], "bias": false}]},
        "training": {"optimizer": "adam", "micro_batch_size": 16},
        "run": {"steps": 2, "data": "synthetic:100x20"}})");
    const std::string checkpoint = folder.path("checkpoint");
    report_of({"--scenario", scenario, "--ranks", "2", "--set", "/run/checkpoint=" + checkpoint});
    const std::vector<std::string> job{"--optimizer", "adam", "--micro-batch", "16", "--topology", "host",
                                       "--gpus",      "2",    "--json"};
    const auto plan_of = [&](std::vector<std::string> arguments) {
        const Outcome outcome = zeroplan(std::vector<std::string>{"plan"} + arguments + job);
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        return json::parse(outcome.out, nullptr, false);
    };
    const json original = plan_of({"--scenario", scenario});
    for (const std::string& path : {checkpoint, checkpoint + "/model.safetensors"}) {
        const json plan = plan_of({"--model", path});
        EXPECT_EQ(plan.at("memory"), original.at("memory")) << path;
        EXPECT_EQ(plan.at("model").at("parameters"), 20 * 30 + 30 + 30 * 5) << path;
    }
}

TEST(Run, RefusesToStartWhatCannotBeHeld) {
    SKIP_WITHOUT_RUNNER();
    for (const char* setting : {"/run/data=synthetic:99999999999x100", "/run/epochs=1000000000000"}) {
        const Outcome outcome = run_program("zeroplan-run", {"--model", "tutorial-mlp", "--set", setting});
        EXPECT_EQ(outcome.status, 2) << setting;
        EXPECT_NE(outcome.err.find(std::string(setting).substr(0, 9)), std::string::npos) << outcome.err;
        EXPECT_NE(outcome.err.find("this machine has "), std::string::npos) << outcome.err;
        EXPECT_NE(outcome.err.find("state /run/steps"), std::string::npos) << outcome.err;
    }
    // Two steps of the same data are nothing.
    EXPECT_EQ(run_program("zeroplan-run", {"--model", "tutorial-mlp", "--quiet", "--set",
                                           "/run/data=synthetic:99999999999x100", "--set", "/run/steps=2"})
                  .status,
              0);
}

struct WrongInput {
    std::vector<std::string> arguments;
    std::string mentions;
    std::vector<std::string> environment = {};
};
class RunRefuses : public testing::TestWithParam<WrongInput> {};

TEST_P(RunRefuses, WithOneClearError) {
    SKIP_WITHOUT_RUNNER();
    const Outcome result = run_program("zeroplan-run", GetParam().arguments, GetParam().environment);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(GetParam().mentions), std::string::npos) << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    Input, RunRefuses,
    testing::Values(
        WrongInput{{"--model", "tutorial-mlp", "--backend", "cuda"}, "--backend host"},
        WrongInput{{"--model", "tutorial-mlp", "--backend", "tpu"}, "no back end 'tpu'"},
        WrongInput{{"--model", "llama-3-8b"}, "plan and sim know this model"},
        WrongInput{{"--model", "tutorial-mlp", "--ranks", "0"}, "1 to 64"},
        WrongInput{{"--model", "tutorial-mlp", "--ranks", "65"}, "1 to 64"},
        WrongInput{{"--model", "tutorial-mlp", "--ranks", "2", "--gpus", "4"},
                   "--ranks 2 and --gpus 4 differ"},
        WrongInput{{"--model", "tutorial-mlp", "--topology", "dgx-h100"}, "dgx-h100"},
        WrongInput{{"--model", "tutorial-mlp", "--engine", "fsdp2"}, "fsdp2"},
        WrongInput{{"--model", "tutorial-mlp", "--set", "/run/data=synthetic:10x7"}, "7"},
        WrongInput{{"--model", "tutorial-mlp", "--set", "/run/data=/nowhere.npy"}, "/nowhere.npy"},
        WrongInput{{"--model", "tutorial-mlp", "--trace", "/nowhere/trace.json"}, "/nowhere"},
        WrongInput{{"--model", "tutorial-mlp", "--grad-accum", "1000000000"},
                   "1000000000 micro-batches, but the data has 1000 samples"},
        WrongInput{
            {"--model", "tutorial-mlp", "--ranks", "3"}, "the launcher has started 2", rank_of(0, 2, 1024)},
        WrongInput{{"--model", "tutorial-mlp"}, "RANK=2", rank_of(2, 2, 1024)}));

}  // namespace
}  // namespace zeroplan::test
