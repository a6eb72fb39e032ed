#include "engine_warnings.hpp"

#include <string>

#include <gtest/gtest.h>

#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

/// Messages of the "no_effect" warnings of a training of `preset` on a DGX H100.
std::string without_effect(const std::string& training, const std::string& preset = "gpt2") {
    const Plan plan =
        make_plan(resolve_scenario({"",
                                    R"({"model": {"preset": ")" + preset + R"("}, "training": {)" + training +
                                        R"(}, "cluster": {"topology": "dgx-h100"}})",
                                    {}}));
    std::string texts;
    for (const Warning& warning : plan.warnings)
        if (warning.code == "no_effect") texts += warning.message + "\n";
    return texts;
}

void expect_refused(const std::string& training, const std::string& pointer) {
    try {
        without_effect(training);
        ADD_FAILURE() << training;
    } catch (const Error& error) {
        EXPECT_EQ(error.place().pointer, pointer) << training;
        EXPECT_FALSE(error.hint().empty());
    }
}

TEST(PlanWarnings, TellWhatACalibrationMeasuredInVain) {
    const auto told = [](const char* stage, const char* measured) {
        Scenario scenario =
            resolve_scenario({"",
                              std::string(R"({"model": {"preset": "gpt2"}, "training": {"zero_stage": )") +
                                  stage + R"(}, "cluster": {"topology": "dgx-h100"}})",
                              {}});
        scenario.cluster.calibration.source = "ours.json";
        scenario.cluster.calibration.collectives = {{CollectiveKind::all_reduce, 8, 1, 1e6, 1e-4}};
        if (*measured != '\0') scenario.cluster.calibration.constants[measured] = 1e-6;
        std::string texts;
        for (const Warning& warning : make_plan(scenario).warnings)
            if (warning.code == "no_effect") texts += warning.message;
        return texts;
    };
    EXPECT_EQ(told("3", ""),
              "calibration ours.json has no effect: no collective of this step is an all_reduce");
    EXPECT_EQ(told("0", ""), "");
    EXPECT_EQ(told("3", "nccl_base_latency_s"), "");
}

TEST(EngineWarnings, DeepSpeedsRatioAndDrivesAreStage3s) {
    const std::string offload = R"("engine": "deepspeed", "offload_optimizer": )";
    EXPECT_NE(without_effect(offload + R"("nvme", "zero_stage": 2)").find("nvme has the effect of cpu"),
              std::string::npos);
    EXPECT_NE(without_effect(offload + R"("cpu", "zero_stage": 1, "offload_fraction": 0.5)")
                  .find("offload_fraction = 0.5"),
              std::string::npos);
    // One sub-group: half of it rounds down to none.
    EXPECT_NE(
        without_effect(offload + R"("cpu", "zero_stage": 3, "offload_fraction": 0.5)").find("1 sub-group(s)"),
        std::string::npos);
    EXPECT_EQ(without_effect(offload + R"("cpu", "zero_stage": 3)"), "");
}

TEST(EngineWarnings, DeepSpeedOffloadsParametersAtStage3Alone) {
    const std::string offload = R"("engine": "deepspeed", "offload_parameters": "cpu", "zero_stage": )";
    for (const char* stage : {"0", "1", "2"})
        EXPECT_NE(without_effect(offload + stage).find(std::string("at zero_stage ") + stage),
                  std::string::npos);
    EXPECT_EQ(without_effect(offload + "3"), "");
}

TEST(EngineWarnings, FullyShardHasNoneOfFsdp1sKeys) {
    EXPECT_NE(
        without_effect(R"("engine": "fsdp2", "fsdp": {"limit_all_gathers": true})").find("limit_all_gathers"),
        std::string::npos);
    EXPECT_NE(without_effect(R"("engine": "fsdp2", "fsdp": {"backward_prefetch": "post"})")
                  .find("backward_prefetch = post"),
              std::string::npos);
    EXPECT_EQ(without_effect(R"("engine": "fsdp1", "fsdp": {"backward_prefetch": "post"})"), "");
}

TEST(EngineWarnings, UnevenExpertsAreMegatrons) {
    const std::string moe = R"("sequence_length": 512, "moe": {"load_imbalance": 1.5}, "engine": )";
    EXPECT_NE(without_effect(moe + R"("fsdp2")").find("has no experts"), std::string::npos);
    EXPECT_NE(without_effect(moe + R"("fsdp2")", "mixtral-8x7b").find("with engine fsdp2"),
              std::string::npos);
    EXPECT_EQ(without_effect(R"("engine": "fsdp2", "moe": {"load_imbalance": 1})"), "");
}

TEST(EngineWarnings, Fp8sRecipeWantsFp8) {
    EXPECT_NE(without_effect(R"("engine": "fsdp2", "fp8": {"recipe": "rowwise"})").find("compute_dtype bf16"),
              std::string::npos);
    EXPECT_EQ(without_effect(R"("engine": "fsdp2", "compute_dtype": "fp8", "fp8": {"recipe": "rowwise"})"),
              "");
}

TEST(EngineChecks, RefuseWhatTheEnginesDoNotHave) {
    expect_refused(
        R"("engine": "fsdp2", "compute_dtype": "fp8", "fp8": {"recipe": "rowwise", "all_gather": true})",
        "/training/fp8");
    expect_refused(R"("engine": "fsdp1", "fsdp": {"reshard_after_forward": 2})",
                   "/training/fsdp/reshard_after_forward");
    expect_refused(R"("engine": "fsdp2", "fsdp": {"reshard_after_forward": 3})",
                   "/training/fsdp/reshard_after_forward");
    expect_refused(R"("engine": "ddp_zero_optimizer", "shard_group": 4)", "/training/shard_group");
    expect_refused(R"("engine": "fsdp1", "optimizer": "muon")", "/training/optimizer");
    expect_refused(R"("engine": "deepspeed", "zero_stage": 0, "optimizer": "muon")", "/training/optimizer");
    expect_refused(R"("engine": "deepspeed", "zero_stage": 3, "optimizer": "muon")",
                   "/training/deepspeed/zero_optimization/reduce_scatter");
}

}  // namespace
}  // namespace zeroplan
