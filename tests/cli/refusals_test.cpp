#include <filesystem>

#include "cli/expect_refused.hpp"

namespace zeroplan::test {
namespace {

TEST(EmptyValues, AreRefusedForEveryFlag) {
    for (const char* flag : {"--scenario", "--topology", "--gpu", "--csv", "--snapshot", "--save-scenario",
                             "--deepspeed", "--accelerate", "--against", "--set", "--engine", "--seq"})
        expect_refused(plan_of_gpt2({flag, ""}),
                       {"command line: " + std::string(flag) + ": ", "empty value"});
    expect_refused({"plan", "--model", ""}, {"--model: ", "empty value"});
    expect_refused({"import", ""}, {"FILE: ", "empty value"});
    expect_refused({"compare", "", "b.json"}, {"empty value"});
    expect_refused(plan_of_gpt2({"--compare-stages", ""}),
                   {"command line: --compare-stages: ", "\"\" is no list", "8,64,512"});
    EXPECT_EQ(zeroplan(plan_of_gpt2({"--compare-stages"})).status, 0);  // its value may be left out
    EXPECT_EQ(zeroplan(plan_of_gpt2({"--csv", "/dev/null"})).status, 0);
}

TEST(FilesOfAnotherKind, AreNamedWithTheFlagThatTakesThem) {
    const TemporaryFolder folder;
    const std::string scenario = folder.file("s.json", R"({"model": {"preset": "gpt2"}, "training": {}})"),
                      report = folder.file("r.json", R"({"schema": 1, "kind": "plan", "model": {}})"),
                      model = folder.file("m.json", R"({"model_type": "llama"})"),
                      topology = folder.file("t.json", R"({"gpus_per_node": 8})"),
                      deepspeed = folder.file("d.json", R"({"zero_optimization": {"stage": 3}})");
    expect_refused({"plan", "--model", scenario}, {"--model: ", scenario + " is a scenario", "--scenario"});
    expect_refused({"plan", "--model", topology}, {"is a topology", "--topology"});
    expect_refused({"plan", "--model", deepspeed}, {"is a DeepSpeed configuration", "--deepspeed"});
    expect_refused({"plan", "--model", report}, {"is a report of zeroplan"});
    expect_refused({"plan", "--scenario", model}, {model + ": ", "the config.json of a model", "--model"});
    expect_refused({"plan", "--scenario", topology}, {topology + ": ", "a topology", "--topology"});
    expect_refused({"plan", "--scenario", report}, {report + ": /kind: ", "a report of zeroplan"});
    expect_refused(plan_of_gpt2({"--topology", scenario}), {scenario + ": ", "a scenario", "--scenario"});
    for (const std::string& file : {scenario, model, topology, report})
        expect_refused(plan_of_gpt2({"--deepspeed", file}),
                       {file + ": line 1: ", "not a DeepSpeed configuration"});
    expect_refused({"plan", scenario}, {scenario, "--scenario " + scenario, "--model " + scenario});
    expect_refused({"plan", "--model", folder.file("a.safetensors.index.json", R"({"metadata": {}})")},
                   {"weight_map", "download it again"});
    expect_refused({"plan", "--model", folder.file("b.safetensors.index.json", R"({"weight_map": {}})")},
                   {"/weight_map: ", "lists no tensors"});
    expect_refused(plan_of_gpt2({"--set", R"(/model/layers=[{"linear": [10, 10]}])"}),
                   {"--set /model/layers: ", "plain stack", "gpt2", "num_hidden_layers"});
}

TEST(Errors, SayThatTheFolderIsGoneThatRelativePathsStartIn) {
    namespace fs = std::filesystem;
    const TemporaryFolder folder;
    const fs::path before = fs::current_path();
    fs::create_directory(folder.path("gone"));
    fs::current_path(folder.path("gone"));
    fs::remove(folder.path("gone"));
    for (const std::vector<std::string>& flag : {std::vector<std::string>{"--background", "job.json"},
                                                 {"--topology", "."},
                                                 {"--calibration", "."}}) {
        const std::string program = flag[0] == "--background" ? "sim" : "plan";
        if (program == "sim" && !fs::exists(fs::path(ZEROPLAN_BIN_DIR) / "zeroplan-sim")) continue;
        std::vector<std::string> arguments{program, "--model", "gpt2"};
        arguments.insert(arguments.end(), flag.begin(), flag.end());
        expect_refused(arguments, {flag[0] + ": ", "\"" + flag[1] + "\"", "is gone", "the whole path"});
    }
    fs::current_path(before);
}

TEST(Errors, NameWhereTheyAreBothValuesAndTheWayOut) {
    expect_refused({"plan", "--set", R"(/model={"hidden_size": 8})"},
                   {"--set /model: ", "no model_type is given", "built are llama", "mamba", "smollm3"});
    expect_refused(plan_of_gpt2({"--hpz", "4"}), {"--hpz: ", "secondary_shard_group is 4", "stage 0"});
    expect_refused(
        plan_of_gpt2({"--nodes", "2", "--set",
                      R"(/cluster/inter_node={"kind": "roce", "bytes_per_second_per_gpu": 0})"}),
        {"--set /cluster/inter_node: ", "16 GPUs", "roce", "bytes_per_second_per_gpu 0", "50000000000"});
    expect_refused({"plan", "--model", "llama-3-8b", "--micro-batch", "1073741824"},
                   {"--micro-batch: ", "exceeds 2^64",
                    "micro_batch_size 1,073,741,824 × sequence_length 8,192", "make it smaller"});
    expect_refused({"nonsense"}, {"demo; zeroplan --help tells"});
}

// The figures of one plan, whatever of them is shown.
TEST(LargestSizes, EndWithOneStatusInEveryForm) {
    for (const std::vector<std::string>& form : {std::vector<std::string>{}, {"--json"}, {"--quiet"}}) {
        std::vector<std::string> arguments = plan_of_gpt2({"--micro-batch", "1000000007"});
        arguments.insert(arguments.end(), form.begin(), form.end());
        EXPECT_EQ(zeroplan(arguments).status, 1) << testing::PrintToString(form);
    }
}

TEST(Refusals, SayWhereAModelFileHasNoName) {
    const TemporaryFolder folder;
    expect_refused({"plan", "--scenario", folder.file("e.json", R"({"model": {"file": ""}})")},
                   {"e.json: /model/file: there is no file"});
}

TEST(Refusals, TakeAFileWhoseNameIsNotUtf8) {
    const TemporaryFolder folder;
    for (const char* flag : {"--model", "--calibration"})
        expect_refused({"plan", flag, folder.file("\xff.json", "{}")}, {"/"});
}

TEST(Refusals, SayHowManyProcessesALauncherMayStart) {
    const TemporaryFolder folder;
    expect_refused({"import", folder.file("run.sh", "torchrun --nproc_per_node=99999999999 train.py\n")},
                   {"\"99999999999\"", "a whole number from 1 to 1000000"});
}

TEST(Refusals, SayWhereThePathOfACheckpointHoldsANul) {
    const TemporaryFolder folder;
    const std::string file =
        folder.file("s.json", R"({"model": {"preset": "tutorial-mlp"}, "run": {"checkpoint": "a\u0000b"}})");
    expect_refused({"plan", "--scenario", file}, {"s.json: /run/checkpoint: ", "NUL"});
}

}  // namespace
}  // namespace zeroplan::test
