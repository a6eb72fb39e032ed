#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/run_program.hpp"

namespace zeroplan::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string file(const std::string& name) {
    return ZEROPLAN_TEST_DATA "/core/data/imports/" + name;
}

TEST(ImportCommand, ExplainsADeepSpeedFile) {
    const Outcome outcome =
        zeroplan({"import", file("deepspeed/z3_auto_hf.json"), "--model", "llama-2-7b", "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const json report = json::parse(outcome.out);
    EXPECT_EQ(report["figures"]["stage3_prefetch_bucket_size"]["value"], 15099494);
    EXPECT_EQ(report["scenario"]["model"]["preset"], "llama-2-7b");
}

TEST(ImportCommand, MakesAScenarioOfAMegatronScript) {
    const std::string script = file("launch/megatron_gpt.sh");
    const Outcome outcome = zeroplan({"import", script, "--topology", "dgx-h100", "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const json scenario = json::parse(outcome.out)["scenario"];
    EXPECT_EQ(scenario["training"]["gradient_accumulation_steps"], 8);  // 64 / 2 / (8 / 2 ranks)
    EXPECT_EQ(scenario["training"]["offload_optimizer"], "cpu");
    EXPECT_EQ(scenario["model"]["hidden_size"], 2048);
    const Outcome named =
        zeroplan({"import", script, "--topology", "dgx-h100", "--model", "llama-2-7b", "--json"});
    EXPECT_EQ(json::parse(named.out)["scenario"]["model"], (json{{"preset", "llama-2-7b"}}));
}

TEST(ImportCommand, EndsWith1ForWhatIsRejectedAnd2ForWhatCannotBe) {
    EXPECT_EQ(zeroplan({"import", file("deepspeed/z3_float_prefetch.json")}).status, 1);
    EXPECT_EQ(zeroplan({"import", file("deepspeed/both_bf16_fp16.json")}).status, 2);
    const Outcome mismatch = zeroplan({"import", file("deepspeed/batch_mismatch.json"), "--gpus", "16"});
    EXPECT_EQ(mismatch.status, 2);
    EXPECT_THAT(mismatch.err, HasSubstr("line 2: train_batch_size"));
    EXPECT_THAT(mismatch.err, HasSubstr("run on 8 ranks"));
    const Outcome derived =
        zeroplan({"import", file("deepspeed/batch_only_total.json"), "--gpus", "4", "--json"});
    EXPECT_EQ(json::parse(derived.out)["scenario"]["training"]["gradient_accumulation_steps"], 32);
    EXPECT_EQ(zeroplan({"import", file("topo/smi_list_not_topo.txt")}).status, 2);
}

TEST(ImportCommand, WritesATopologyThatPlanTakes) {
    const TemporaryFolder folder;
    const std::string path = folder.path("mine.json");
    const Outcome written = zeroplan({"import", file("topo/hgx_h100_9nic.txt"), "--gpu", "h100-sxm-80gb",
                                      "--nic-gbps", "400", "--output", path, "--quiet"});
    EXPECT_EQ(written.status, 0) << written.err;
    EXPECT_EQ(written.out, "");
    EXPECT_EQ(zeroplan({"plan", "--model", "gpt2", "--topology", path, "--nodes", "2", "--quiet"}).status, 0);
    const Outcome unknown = zeroplan({"import", file("topo/hgx_h100_9nic.txt"), "--output", path});
    EXPECT_EQ(unknown.status, 2);
    EXPECT_THAT(unknown.err, HasSubstr("--gpu"));
}

TEST(ImportCommand, WritesAScenarioThatPlanTakes) {
    const TemporaryFolder folder;
    const std::string path = folder.path("scenario.json");
    EXPECT_EQ(zeroplan({"import", file("accelerate/fsdp2_reshard.yaml"), "--model", "gpt2", "--output", path,
                        "--quiet"})
                  .status,
              0);
    const Outcome plan = zeroplan({"plan", "--scenario", path, "--json"});
    EXPECT_EQ(plan.status, 0) << plan.err;
    EXPECT_EQ(json::parse(plan.out)["world_size"], 6);
}

TEST(ImportCommand, SetsAnOutOfMemoryMessageAgainstAPlan) {
    const Outcome outcome =
        zeroplan({"import", file("logs/oom_old_style.txt"), "--model", "gpt2", "--topology", "dgx-a100"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("capacity, not fragmentation"));
    EXPECT_THAT(outcome.out, HasSubstr("planned_allocated_bytes"));
}

TEST(ImportCommand, ReadsTheDeepSpeedFileThatAScriptNames) {
    const TemporaryFolder folder;
    const std::string config = R"({"zero_optimization": {"stage": 3}, "train_batch_size": "auto"})";
    std::filesystem::create_directory(folder.path("conf"));
    folder.file("conf/ds.json", config);
    const std::string script = folder.file(
        "train.sh", "torchrun --nproc_per_node 8 train.py --deepspeed conf/ds.json --micro_batch_size 2\n");
    // Relative to the script, wherever this runs.
    const json read = json::parse(zeroplan({"import", script, "--json"}).out);
    EXPECT_EQ(read["scenario"]["training"]["zero_stage"], 3);
    EXPECT_EQ(read["scenario"]["training"]["micro_batch_size"], 2);
    EXPECT_THAT(read["findings"].dump(), HasSubstr("is read from " + folder.path("conf/ds.json")));
    // What the user hands over comes first, and what isn't there is asked for.
    const std::string other = folder.file("other.json", R"({"zero_optimization": {"stage": 1}})");
    EXPECT_EQ(json::parse(zeroplan({"import", script, "--deepspeed", other, "--json"})
                              .out)["scenario"]["training"]["zero_stage"],
              1);
    std::filesystem::remove(folder.path("conf/ds.json"));
    EXPECT_THAT(zeroplan({"import", script}).out, HasSubstr("give it, too: --deepspeed conf/ds.json"));
    folder.file("conf/ds.json", "{");
    EXPECT_EQ(zeroplan({"import", script}).status, 2);
}

TEST(ImportFlags, PlanTakesAnAccelerateFile) {
    const Outcome outcome =
        zeroplan({"plan", "--model", "gpt2", "--accelerate", file("accelerate/fsdp_hybrid.yaml"), "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const json plan = json::parse(outcome.out);
    EXPECT_EQ(plan["world_size"], 32);
    EXPECT_EQ(plan["scenario"]["training"]["engine"], "fsdp1");
    EXPECT_EQ(plan["scenario"]["training"]["shard_group"], 8);
    EXPECT_THAT(plan["warnings"].dump(), HasSubstr("divided by 8"));
}

TEST(ImportFlags, PlanNamesTheFileThatIsWrong) {
    const Outcome outcome =
        zeroplan({"plan", "--model", "gpt2", "--deepspeed", file("deepspeed/both_bf16_fp16.json")});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, HasSubstr("both_bf16_fp16.json: line 3: bf16"));
    EXPECT_EQ(zeroplan({"plan", "--model", "gpt2", "--deepspeed", "absent.json"}).status, 2);
}

TEST(ImportFlags, FlagsOverrideTheFile) {
    const TemporaryFolder folder;
    const std::string saved = folder.path("s.json");
    (void)zeroplan({"plan", "--model", "gpt2", "--accelerate", file("accelerate/fsdp1_full_shard.yaml"),
                    "--zero", "2", "--gpus", "4", "--save-scenario", saved, "--quiet"});
    const Outcome plan = zeroplan({"plan", "--scenario", saved, "--json"});
    EXPECT_EQ(json::parse(plan.out)["scenario"]["training"]["zero_stage"], 2);
    EXPECT_EQ(json::parse(plan.out)["world_size"], 4);
}

}  // namespace
}  // namespace zeroplan::test
