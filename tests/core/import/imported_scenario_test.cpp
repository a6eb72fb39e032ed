#include <gmock/gmock.h>

#include "core/import/import_file.hpp"
#include "core/json/error_of.hpp"

namespace zeroplan {
namespace {

using testing::HasSubstr;

ScenarioRequest request_of(const Import& import, std::vector<Setting> settings = {}) {
    ScenarioRequest request;
    request.text = R"({"model": {"preset": "gpt2"}})";
    request.settings = std::move(settings);
    request.imported.push_back(import.scenario);
    return request;
}

Setting set(const char* pointer, const char* json) {
    return {pointer, json, "--set"};
}

TEST(ImportedScenario, FillsInTheScenario) {
    const Scenario scenario =
        resolve_scenario(request_of(import_file("deepspeed/z2_legacy_cpu_offload.json")));
    EXPECT_EQ(scenario.training.engine, EngineKind::deepspeed);
    EXPECT_EQ(scenario.training.zero_stage, 2U);
    EXPECT_EQ(scenario.training.micro_batch_size, 4U);
    EXPECT_EQ(scenario.training.compute_dtype, DType::fp16);
    EXPECT_EQ(scenario.training.offload_optimizer, OffloadTarget::cpu);
    EXPECT_THAT(scenario.training.deepspeed_json, HasSubstr("\"reduce_bucket_size\":200000000"));
}

TEST(ImportedScenario, LiesBeneathFlagsAndFile) {
    const Import import = import_file("deepspeed/z3_hpz.json");
    const Scenario scenario = resolve_scenario(
        request_of(import, {set("/training/zero_stage", "2"), set("/training/secondary_shard_group", "1")}));
    EXPECT_EQ(scenario.training.zero_stage, 2U);
    EXPECT_EQ(scenario.training.secondary_shard_group, 1U);
    EXPECT_EQ(scenario.training.engine, EngineKind::deepspeed);
    ScenarioRequest request = request_of(import);
    request.text = R"({"model": {"preset": "gpt2"}, "training": {"micro_batch_size": 7}})";
    EXPECT_EQ(resolve_scenario(request).training.micro_batch_size, 7U);
}

TEST(ImportedScenario, LetsTheFirstOfTwoFilesWin) {
    ScenarioRequest request = request_of(import_file("deepspeed/z3_hpz.json"));
    request.imported.push_back(import_file("accelerate/ds_zero2_offload_lora.yaml").scenario);
    const Scenario scenario = resolve_scenario(request);
    EXPECT_EQ(scenario.training.zero_stage, 3U);
    EXPECT_EQ(scenario.training.gradient_accumulation_steps, 8U);  // which the first says nothing of
}

TEST(ImportedScenario, CompletesTheBatchWithTheRanks) {
    const Import import = import_file("deepspeed/batch_only_total.json");
    const Scenario eight = resolve_scenario(request_of(import));
    EXPECT_EQ(eight.training.gradient_accumulation_steps, 16U);  // 4096 / 32 / 8
    const Scenario pipelined =
        resolve_scenario(request_of(import, {set("/training/pipeline_parallel", "2")}));
    EXPECT_EQ(pipelined.training.gradient_accumulation_steps, 32U);  // 4 data-parallel ranks
    const Scenario larger = resolve_scenario(request_of(import, {set("/training/micro_batch_size", "64")}));
    EXPECT_EQ(larger.training.gradient_accumulation_steps, 8U);
}

TEST(ImportedScenario, RefusesABatchThatDoesNotHold) {
    const ScenarioRequest request =
        request_of(import_file("deepspeed/batch_mismatch.json"), {set("/cluster/nodes", "2")});
    const Error error = error_of([&] { (void)resolve_scenario(request); });
    EXPECT_EQ(error.place(), (ErrorPlace{"deepspeed/batch_mismatch.json", "line 2: train_batch_size"}));
    EXPECT_THAT(error.message(), HasSubstr("16 data-parallel ranks = 512"));
}

TEST(ImportedScenario, BlamesTheLineOfTheFile) {
    // Seven ranks, which 8 doesn't divide.
    const ScenarioRequest request =
        request_of(import_file("deepspeed/z3_hpz.json"), {set("/cluster/gpus_used", "7")});
    const Error error = error_of([&] { (void)resolve_scenario(request); });
    EXPECT_EQ(error.place().file, "deepspeed/z3_hpz.json");
    EXPECT_THAT(error.place().pointer, HasSubstr("zero_hpz_partition_size"));
}

TEST(ImportedScenario, ReplacesTheNumberOfGpusAsAWhole) {
    const Import import = import_file("accelerate/fsdp1_full_shard.yaml");  // 16 processes on 2 machines
    EXPECT_EQ(resolve_scenario(request_of(import)).cluster.nodes, 2U);
    const Scenario fewer = resolve_scenario(request_of(import, {set("/cluster/gpus_used", "4")}));
    EXPECT_EQ(fewer.cluster.gpus_used, 4U);
    EXPECT_EQ(fewer.cluster.nodes, 1U);
}

TEST(ImportedScenario, KnowsTheRanksWithoutAModel) {
    ScenarioRequest request;
    EXPECT_EQ(stated_data_parallel_ranks(request), std::nullopt);
    request.settings = {set("/cluster/gpus_used", "16"), set("/training/tensor_parallel", "2")};
    EXPECT_EQ(stated_data_parallel_ranks(request), 8U);
}

}  // namespace
}  // namespace zeroplan
