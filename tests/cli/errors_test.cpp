#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run_program.hpp"

namespace zeroplan::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// What a wrong input has to be answered with: where it is, what is wrong and the way out.
struct Case {
    const char* name;
    std::vector<std::string> arguments;
    std::vector<std::string> expected;
};

void PrintTo(const Case& c, std::ostream* stream) {
    *stream << c.name;
}

class BadInput : public testing::TestWithParam<Case> {};

TEST_P(BadInput, IsOneClearErrorAndExitStatusTwo) {
    const Outcome outcome = zeroplan(GetParam().arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("zeroplan: error: "));
    for (const std::string& part : GetParam().expected) EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("internal error")));
}

INSTANTIATE_TEST_SUITE_P(
    Flags, BadInput,
    testing::Values(
        Case{"no_model", {"plan"}, {"no model is given", "--model"}},
        Case{"unknown_flag", {"plan", "--zerro", "3"}, {"--zerro is not known here", "did you mean --zero?"}},
        Case{"missing_value", {"plan", "--model", "gpt2", "--zero"}, {"--zero", "missing"}},
        Case{"flag_twice", {"plan", "--model", "gpt2", "--tp", "1", "--tp", "2"}, {"--tp"}},
        Case{"stray_word", {"plan", "--model", "gpt2", "extra"}, {"extra is not known here"}},
        Case{"unknown_preset",
             {"plan", "--model", "llama-3-9b"},
             {"command line: --model: ", "did you mean llama-3-8b?"}},
        Case{"unknown_topology",
             {"plan", "--model", "gpt2", "--topology", "dgx-h10"},
             {"command line: --topology: ", "did you mean dgx-h100?"}},
        Case{"unknown_gpu",
             {"plan", "--model", "gpt2", "--gpu", "h100"},
             {"--gpu: ", "\"h100\"", "h100-sxm-80gb"}},
        Case{"unknown_word",
             {"plan", "--model", "gpt2", "--optimizer", "adam_w"},
             {"command line: --optimizer: ", "adam_w", "did you mean \"adamw\"?", "sgd_momentum"}},
        Case{"stage_too_high",
             {"plan", "--model", "gpt2", "--zero", "4"},
             {"command line: --zero: ", "from 0 to 3, but is 4"}},
        Case{"negative",
             {"plan", "--model", "gpt2", "--micro-batch", "-1"},
             {"command line: --micro-batch: ", "but is -1"}},
        Case{"zero", {"plan", "--model", "gpt2", "--nodes", "0"}, {"command line: --nodes: ", "but is 0"}},
        Case{"fraction",
             {"plan", "--model", "gpt2", "--seq", "10.5"},
             {"command line: --seq: ", "but is 10.5"}},
        Case{"absurd",
             {"plan", "--model", "gpt2", "--micro-batch", "1e30"},
             {"--micro-batch: ", "but is 1e+30"}},
        Case{"beyond_64_bits", {"plan", "--model", "gpt2", "--seq", "99999999999999999999"}, {"--seq: "}},
        Case{"not_a_number", {"plan", "--model", "gpt2", "--seq", "NaN"}, {"--seq: ", "\"NaN\""}},
        Case{"too_long",
             {"plan", "--model", "gpt2", "--seq", "2048"},
             {"command line: --seq: ", "2048", "1024 learned positions"}},
        Case{"degree",
             {"plan", "--model", "gpt2", "--tp", "3"},
             {"command line: --tp: ", "= 3 ranks don't divide", "8 GPUs", "1, 2, 4, 8"}},
        Case{"world",
             {"plan", "--model", "gpt2", "--gpus", "4", "--set", "/training/data_parallel=3"},
             {"--set /training/data_parallel: ",
              "data_parallel 3 × tensor_parallel 1 × pipeline_parallel 1 × context_parallel 1 = 3 ranks",
              "4 GPUs in use", "data_parallel 4 would fit"}},
        Case{"shard_group",
             {"plan", "--model", "gpt2", "--zero", "3", "--shard-group", "3"},
             {"command line: --shard-group: ", "3 doesn't divide", "= 8", "nearest that does is 2"}},
        Case{
            "partial_nodes", {"plan", "--model", "gpt2", "--gpus", "12"}, {"--gpus: ", "12 GPUs", "8 or 16"}},
        Case{"dtype_of_gpu",
             {"plan", "--model", "gpt2", "--gpu", "v100-sxm-32gb"},
             {"v100-sxm-32gb has no bf16", "--dtype fp16"}},
        Case{"set_without_value",
             {"plan", "--model", "gpt2", "--set", "/training/loss"},
             {"--set: ", "/pointer=value"}},
        Case{"set_unknown_key",
             {"plan", "--model", "gpt2", "--set", "/training/micro_batch=2"},
             {"--set /training/micro_batch: ", "did you mean \"micro_batch_size\"?"}},
        Case{"set_bad_escape", {"plan", "--model", "gpt2", "--set", "/training/~2=2"}, {"no JSON pointer"}},
        Case{"heads",
             {"plan", "--model", "gpt2", "--set", "/model/n_embd=770"},
             {"--set /model/n_embd: ", "770", "12 attention heads"}},
        Case{"world_too_large",
             {"plan", "--model", "gpt2", "--nodes", "3000"},
             {"command line: --nodes: ", "3,000 nodes × 8 GPUs = 24,000 ranks", "16,384",
              "at most 2048 nodes"}},
        Case{"single_on_several",
             {"plan", "--model", "gpt2", "--engine", "single"},
             {"command line: --engine: ", "one process on one GPU", "8 GPUs in use", "--gpus 1", "ddp"}},
        Case{"offload_not_built",
             {"plan", "--model", "gpt2", "--offload-optimizer", "cpu"},
             {"command line: --offload-optimizer: "}},
        Case{"deepspeed_file",
             {"plan", "--model", "gpt2", "--deepspeed", "ds.json"},
             {"ds.json: ", "cannot open", "No such file"}},
        Case{"accelerate_file",
             {"plan", "--model", "gpt2", "--accelerate", "a.yaml"},
             {"a.yaml: ", "cannot open", "No such file"}}),
    [](const auto& test) { return std::string(test.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Subcommands, BadInput,
    testing::Values(
        Case{"near", {"plam"}, {"no subcommand \"plam\"", "did you mean \"plan\"?"}},
        Case{
            "later", {"search", "--model", "gpt2"}, {"search is not part of this version", "plan, sim, run"}},
        Case{"list_what", {"list", "model"}, {"\"model\"", "did you mean \"models\"?"}},
        Case{"compare_one", {"compare", "a.json"}, {"B is required"}},
        Case{"compare_missing",
             {"compare", "/nonexistent/a.json", "b.json"},
             {"/nonexistent/a.json: cannot open"}},
        Case{"compare_tolerance", {"compare", "a.json", "b.json", "--tolerance", "-1"}, {"--tolerance: -1"}}),
    [](const auto& test) { return std::string(test.param.name); });

/// The same for a scenario file.
struct FileCase {
    const char* name;
    const char* text;
    std::vector<std::string> expected;
};

void PrintTo(const FileCase& c, std::ostream* stream) {
    *stream << c.name;
}

class BadScenario : public testing::TestWithParam<FileCase> {};

TEST_P(BadScenario, IsPlacedInItsFile) {
    const TemporaryFolder folder;
    const std::string file = folder.file("scenario.json", GetParam().text);
    const Outcome outcome = zeroplan({"plan", "--scenario", file});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("zeroplan: error: " + file + ": "));
    for (const std::string& part : GetParam().expected) EXPECT_THAT(outcome.err, HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(
    Files, BadScenario,
    testing::Values(
        FileCase{"empty", "", {"line 1, column 1", "empty"}},
        FileCase{"model_is_a_name",
                 R"({"model": "mistral-7b"})",
                 {"/model: ", "\"mistral-7b\"", "write {\"preset\":\"mistral-7b\"}"}},
        FileCase{"model_is_a_path",
                 R"({"model": "models/config.json"})",
                 {"/model: ", "write {\"file\":\"models/config.json\"}"}},
        FileCase{"truncated", R"({"model": {"preset": "gpt2"},)", {"line 1", "ends too early"}},
        FileCase{"trailing_comma", "{\"model\": {\"preset\": \"gpt2\",}}", {"line 1", "not JSON"}},
        FileCase{"infinity",
                 R"({"model": {"preset": "gpt2"}, "training": {"offload_fraction": Infinity}})",
                 {"line 1", "Infinity"}},
        FileCase{"binary",
                 "\x7f"
                 "ELF\x02\x01",
                 {"line 1, column 1"}},
        FileCase{"array", "[1, 2]", {"one JSON object"}},
        FileCase{"twice", R"({"model": {"preset": "gpt2"}, "model": {}})", {"/model", "given twice"}},
        FileCase{"unknown_part",
                 R"({"model": {"preset": "gpt2"}, "trainng": {}})",
                 {"/trainng", "did you mean \"training\"?"}},
        FileCase{"unknown_key",
                 R"({"model": {"preset": "gpt2"}, "training": {"zero_stag": 1}})",
                 {"/training/zero_stag: ", "did you mean \"zero_stage\"?"}},
        FileCase{"unknown_cluster_key",
                 R"({"model": {"preset": "gpt2"}, "cluster": {"node": 1}})",
                 {"/cluster/node: ", "did you mean \"nodes\"?"}},
        FileCase{"wrong_type",
                 R"({"model": {"preset": "gpt2"}, "training": {"micro_batch_size": "4"}})",
                 {"/training/micro_batch_size: ", "\"4\""}},
        FileCase{"negative",
                 R"({"model": {"preset": "gpt2"}, "cluster": {"nodes": -1}})",
                 {"/cluster/nodes: ", "but is -1"}},
        FileCase{"schema", R"({"schema": 2, "model": {"preset": "gpt2"}})", {"/schema: ", "2", "schema 1"}},
        FileCase{"stage",
                 R"({"model": {"preset": "gpt2"}, "training": {"engine": "ddp", "zero_stage": 2}})",
                 {"/training/zero_stage: ", "engine ddp has no ZeRO stage 2", "0"}},
        FileCase{"world",
                 R"({"model": {"preset": "gpt2"}, "training": {"data_parallel": 16}})",
                 {"/training/data_parallel: ", "= 16 ranks", "8 GPUs in use (1 node × 8)",
                  "data_parallel 8 would fit"}},
        FileCase{"heads",
                 R"({"model": {"model_type": "llama", "hidden_size": 100, "num_hidden_layers": 2,
                 "num_attention_heads": 3, "intermediate_size": 64, "vocab_size": 32}})",
                 {"/model", "100", "3"}},
        FileCase{"architecture",
                 R"({"model": {"model_type": "lama", "hidden_size": 64}})",
                 {"/model/model_type: ", "lama", "llama"}},
        FileCase{"other_engine",
                 R"({"model": {"preset": "gpt2"}, "training": {"deepspeed": {}}})",
                 {"/training/deepspeed: ", "no meaning for engine native"}},
        FileCase{"run_data",
                 R"({"model": {"preset": "tutorial-mlp"}, "run": {"data": "synthetic:1000x50"}})",
                 {"/run/data: ", "50", "100"}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(BadFiles, AreNamed) {
    const TemporaryFolder folder;
    const Outcome missing = zeroplan({"plan", "--scenario", folder.path("none.json")});
    EXPECT_EQ(missing.status, 2);
    EXPECT_THAT(missing.err, HasSubstr(folder.path("none.json") + ": cannot open"));
    const Outcome directory = zeroplan({"plan", "--scenario", "/"});
    EXPECT_EQ(directory.status, 2);
    EXPECT_THAT(directory.err, HasSubstr("a file is expected"));
    const std::string deep = folder.file("deep.json", std::string(100'000, '['));
    const Outcome nested = zeroplan({"plan", "--scenario", deep});
    EXPECT_EQ(nested.status, 2);
    EXPECT_THAT(nested.err, HasSubstr("nested deeper"));
    const std::string config = folder.file("config.json", "{\"model_type\": \"llama\", ");
    const Outcome model = zeroplan({"plan", "--model", config});
    EXPECT_EQ(model.status, 2);
    EXPECT_THAT(model.err, HasSubstr(config + ": line 1"));
}

}  // namespace
}  // namespace zeroplan::test
