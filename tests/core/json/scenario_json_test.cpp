#include <filesystem>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/json/error_of.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Scenario of_text(std::string text, std::vector<Setting> settings = {}) {
    return resolve_scenario({"", std::move(text), std::move(settings)});
}

TEST(ResolveScenario, FillsInTheDefaults) {
    const Scenario s = of_text(R"({"model": {"preset": "gpt2"}})");
    EXPECT_EQ(s.cluster.topology, "dgx-h100");
    EXPECT_EQ(s.world_size(), 8U);
    EXPECT_EQ(s.training.engine, EngineKind::native);
    EXPECT_EQ(s.training.zero_stage, 0U);
    EXPECT_EQ(s.training.data_parallel, 8U);
    EXPECT_EQ(s.training.compute_dtype, DType::bf16);
    EXPECT_EQ(s.training.master_dtype, DType::fp32);
    EXPECT_EQ(s.training.optimizer, Optimizer::adamw);
    EXPECT_EQ(s.training.sequence_length, 1024U);
    EXPECT_EQ(s.model.parameter_count(), 124'439'808U);
    EXPECT_EQ(s.run.data, "synthetic:1000x1024");
}

TEST(ResolveScenario, ComesBackFromItsJson) {
    for (
        const char* text :
        {R"({"model": {"preset": "tutorial-mlp"}, "cluster": {"topology": "host", "gpus_used": 4}})",
         R"({"model": {"preset": "llama-3-8b"}, "training": {"zero_stage": 3, "recompute": "full", "shard_group": 8,
              "gradient_accumulation_steps": 4}, "cluster": {"topology": "dgx-a100", "nodes": 2}})",
         R"({"model": {"preset": "gpt2", "num_hidden_layers": 3}, "training": {"optimizer": "sgd_momentum",
              "compute_dtype": "fp16"}, "cluster": {"gpu": "v100-sxm-32gb", "nodes": 1, "gpus_used": 2,
              "power_limit_watts": 250}, "run": {"steps": 7, "seed": 1, "learning_rate": 0.001,
              "checkpoint": "out"}})",
         R"({"model": {"layers": [{"linear": [8, 4], "activation": "relu"}, {"linear": [4, 8], "bias": false}],
              "loss": "mse"}, "training": {"compute_dtype": "fp32"}})"}) {
        const Scenario scenario = of_text(text);
        const std::string written = scenario_json(scenario);
        EXPECT_EQ(of_text(written), scenario) << written;
        EXPECT_EQ(scenario_json(of_text(written)), written);
    }
}

TEST(ResolveScenario, GivesTheTutorialModelItsJob) {
    const Scenario s =
        of_text(R"({"model": {"preset": "tutorial-mlp"}, "training": {"micro_batch_size": 8}})");
    EXPECT_EQ(s.training.compute_dtype, DType::fp32);
    EXPECT_EQ(s.training.master_dtype, std::nullopt);
    EXPECT_EQ(s.training.optimizer, Optimizer::sgd);
    EXPECT_EQ(s.training.micro_batch_size, 8U);  // the scenario's own word
    EXPECT_EQ(s.training.sequence_length, 1U);
    EXPECT_EQ(s.run.learning_rate, 0.01);
    EXPECT_EQ(s.run.epochs, 10U);
    EXPECT_EQ(s.run.data, "synthetic:1000x100");
    EXPECT_EQ(of_text(R"({"model": {"preset": "tutorial-mlp"}})").training.micro_batch_size, 32U);
    EXPECT_EQ(of_text("{}", {model_setting("tutorial-mlp", "--model")}).training.optimizer, Optimizer::sgd);
}

TEST(ResolveScenario, LetsSettingsOverrideInOrder) {
    const Scenario s = of_text(R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": 1}})",
                               {text_setting("/training/zero_stage", "2", "--zero"),
                                parse_setting("/training/zero_stage=3", "--set")});
    EXPECT_EQ(s.training.zero_stage, 3U);
    EXPECT_EQ(s.training.shard_group, 8U);
}

TEST(ResolveScenario, LetsRestatedDefaultsFollowTheSettings) {
    const std::string saved = scenario_json(
        of_text(R"({"model": {"preset": "gpt2"}, "cluster": {"topology": "dgx-h100", "nodes": 2}})"));
    const Scenario stage3 = of_text(saved, {text_setting("/training/zero_stage", "3", "--zero")});
    EXPECT_EQ(stage3.training.shard_group, 16U);
    EXPECT_EQ(stage3.training.fsdp.gradient_sync, GradientSync::always);
    const Scenario fp32 = of_text(saved, {word_setting("/training/compute_dtype", "fp32", "--dtype")});
    EXPECT_EQ(fp32.training.parameter_dtype, DType::fp32);
    EXPECT_EQ(fp32.training.master_dtype, std::nullopt);
    const Scenario fewer = of_text(saved, {text_setting("/cluster/gpus_used", "4", "--gpus")});
    EXPECT_EQ(fewer.training.data_parallel, 4U);
    EXPECT_EQ(fewer.cluster.nodes, 1U);
    const Scenario more = of_text(saved, {text_setting("/cluster/nodes", "4", "--nodes")});
    EXPECT_EQ(more.training.data_parallel, 32U);
    const Scenario elsewhere = of_text(saved, {topology_setting("dgx-a100", "--topology")});
    EXPECT_EQ(elsewhere.cluster.gpu.name, "a100-sxm-80gb");
    EXPECT_EQ(elsewhere.world_size(), 16U);
}

TEST(ResolveScenario, KeepsWhatTheFileChose) {
    const Scenario s =
        of_text(R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": 2, "shard_group": 4,
                                   "gradient_dtype": "fp32"}})",
                {text_setting("/training/zero_stage", "3", "--zero")});
    EXPECT_EQ(s.training.shard_group, 4U);
    EXPECT_EQ(s.training.gradient_dtype, DType::fp32);
}

TEST(ResolveScenario, PlacesErrorsAtTheFlag) {
    const Error error = error_of([] {
        of_text(R"({"model": {"preset": "gpt2"}})",
                {text_setting("/training/zero_stage", "three", "--zero")});
    });
    EXPECT_EQ(error.place(), (ErrorPlace{"command line", "--zero"}));
    EXPECT_THAT(error.message(), HasSubstr("three"));
    const Error unknown = error_of([] {
        of_text(R"({"model": {"preset": "gpt2"}})", {parse_setting("/training/micro_batch=3", "--set")});
    });
    EXPECT_EQ(unknown.place(), (ErrorPlace{"command line", "--set /training/micro_batch"}));
    EXPECT_THAT(unknown.hint(), HasSubstr("micro_batch_size"));
}

TEST(ResolveScenario, RefusesWhatIsNoScenario) {
    EXPECT_THAT(error_of([] { of_text("[]"); }).message(), HasSubstr("one JSON object"));
    EXPECT_THAT(error_of([] { of_text("{}"); }).hint(), HasSubstr("--model"));
    EXPECT_THAT(error_of([] { of_text(R"({"model": {"preset": "gpt2")"); }).message(),
                HasSubstr("ends too early"));
    EXPECT_EQ(error_of([] { of_text(R"({"modell": {}})"); }).place().pointer, "/modell");
    EXPECT_EQ(error_of([] { of_text(R"({"schema": 2, "model": {"preset": "gpt2"}})"); }).place().pointer,
              "/schema");
    EXPECT_EQ(error_of([] { of_text(R"({"model": {"preset": "gpt2"}, "training": []})"); }).place().pointer,
              "/training");
}

TEST(ResolveScenario, RefusesDtypesTheGpuLacks) {
    const Error error =
        error_of([] { of_text(R"({"model": {"preset": "gpt2"}, "cluster": {"gpu": "v100-sxm-16gb"}})"); });
    EXPECT_THAT(error.message(), HasSubstr("v100-sxm-16gb has no bf16"));
    EXPECT_THAT(error.hint(), HasSubstr("fp16"));
}

TEST(ResolveScenario, ChecksTheRun) {
    const auto pointer = [](const char* run) {
        const std::string text = std::string(R"({"model": {"preset": "tutorial-mlp"}, "run": )") + run + "}";
        return error_of([&] { of_text(text); }).place().pointer;
    };
    EXPECT_EQ(pointer(R"({"epochs": 0})"), "/run/epochs");
    EXPECT_EQ(pointer(R"({"learning_rate": -1})"), "/run/learning_rate");
    EXPECT_EQ(pointer(R"({"data": "synthetic:1000"})"), "/run/data");
    EXPECT_EQ(pointer(R"({"data": "synthetic:1000x50"})"), "/run/data");
    EXPECT_EQ(pointer(R"({"data": "synthetic:0x100"})"), "/run/data");
    EXPECT_EQ(pointer(R"({"lr": 0.1})"), "/run/lr");
}

TEST(ResolveScenario, WarnsOfSequencesTheModelWasNotMadeFor) {
    const Scenario s =
        of_text(R"({"model": {"preset": "llama-2-7b"}, "training": {"sequence_length": 8192}})");
    EXPECT_THAT(s.model.notes, testing::Contains(HasSubstr("8192 tokens are longer than the 4096")));
}

TEST(ResolveScenario, FindsModelFilesBesideTheScenario) {
    namespace fs = std::filesystem;
    const fs::path folder =
        fs::temp_directory_path() / ("zeroplan_scenario_test_" + std::to_string(::getpid()));
    fs::create_directories(folder);
    write_text_file((folder / "stack.json").string(), R"({"layers": [{"linear": [4, 4]}], "loss": "mse"})");
    write_text_file((folder / "scenario.json").string(), R"({"model": {"file": "stack.json"}})");
    const Scenario scenario = resolve_scenario({(folder / "scenario.json").string(), "", {}});
    EXPECT_EQ(scenario.model.parameter_count(), 20U);
    EXPECT_EQ(of_text(scenario_json(scenario)), scenario);  // the path is absolute now
    fs::remove_all(folder);
}

TEST(ModelSetting, TakesPresetsAndPaths) {
    EXPECT_EQ(model_setting("gpt2", "--model").json_value, R"({"preset":"gpt2"})");
    const Setting file = model_setting(std::string(ZEROPLAN_SOURCE_DIR) + "/models/gpt2.json", "--model");
    EXPECT_EQ(json::parse(file.json_value)["file"], std::string(ZEROPLAN_SOURCE_DIR) + "/models/gpt2.json");
    const Error error = error_of([] { model_setting("llama-3-9b", "--model"); });
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_EQ(error.place(), (ErrorPlace{"command line", "--model"}));
    EXPECT_THAT(error.hint(), HasSubstr("llama-3-8b"));
}

TEST(TopologySetting, TakesPresetsAndPaths) {
    EXPECT_EQ(topology_setting("dgx-h100", "--topology").json_value, "\"dgx-h100\"");
    EXPECT_THAT(error_of([] { topology_setting("dgx-h10", "--topology"); }).hint(), HasSubstr("dgx-h100"));
    EXPECT_THROW(topology_setting("", "--topology"), Error);
}

}  // namespace
}  // namespace zeroplan
