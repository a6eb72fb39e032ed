#include <gtest/gtest.h>

#include "core/engines/megatron_scenarios.hpp"
#include "core/engines/program_hazards.hpp"
#include "engines/engine.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {
namespace {

std::uint64_t model_states(const Plan& plan, std::size_t group = 0) {
    std::uint64_t sum = 0;
    for (const Category category :
         {Category::parameters, Category::gradients, Category::master_weights, Category::optimizer_states})
        sum += resident_of(plan, group, category);
    return sum;
}

/// No gradient buffer padding: without weights that end off a multiple of 64 there is none.
TEST(Megatron, Keeps18BytesAParameterWithoutTheDistributedOptimizer) {
    const Scenario scenario = megatron_scenario("gpt", {.data = 4});
    EXPECT_EQ(model_states(make_plan(scenario)), 18 * scenario.model.parameter_count());
}

TEST(Megatron, Keeps6And12ByDBytesWithIt) {
    for (const std::uint64_t ranks : {1ULL, 2ULL, 8ULL}) {
        const Scenario scenario = megatron_scenario("gpt", {.data = ranks, .zero_stage = 1});
        const std::uint64_t parameters = scenario.model.parameter_count();
        EXPECT_EQ(model_states(make_plan(scenario)), 6 * parameters + 12 * parameters / ranks) << ranks;
    }
}

TEST(Megatron, CopiesGradientsThatAreNotFp32) {
    Scenario scenario = megatron_scenario("gpt", {.data = 4});
    scenario.training.gradient_dtype = scenario.training.reduce_dtype = DType::bf16;
    EXPECT_EQ(model_states(make_plan(scenario)), 20 * scenario.model.parameter_count());
}

TEST(Megatron, PrecisionAwareOptimizerKeepsTheRemainderOfTheMaster) {
    Scenario scenario = megatron_scenario("gpt", {.data = 2, .zero_stage = 1});
    scenario.training.megatron_json =
        R"({"use_precision_aware_optimizer": true, "exp_avg_dtype": "bf16", "exp_avg_sq_dtype": "bf16"})";
    EXPECT_EQ(model_states(make_plan(scenario)), (6 + 3) * scenario.model.parameter_count());
}

TEST(Megatron, ContextParallelRanksShareTheStates) {
    const Scenario scenario = megatron_scenario("llama", {.context = 2, .data = 2, .zero_stage = 1});
    const std::uint64_t parameters = scenario.model.parameter_count();
    const std::uint64_t padded = round_up(parameters, 128);  // of the parameter and gradient buffers
    EXPECT_EQ(model_states(make_plan(scenario)), 6 * padded + 12 * padded / 4);
}

TEST(Megatron, ExpertsAreShardedOverTheirOwnGroup) {
    // 4 data-parallel ranks, 2 expert-parallel: experts are whole on 2 of them, which share their states.
    const Scenario scenario = megatron_scenario("deepseek", {.data = 4, .expert = 2, .zero_stage = 1});
    const Plan plan = make_plan(scenario);
    std::uint64_t experts = 0;
    for (const Parameter& p : model_of(plan, 0).parameters)
        if (p.name.find(".experts.") != std::string::npos) experts += p.numel;
    const std::uint64_t dense = round_up(model_of(plan, 0).parameter_count() - experts, 128);
    const std::uint64_t expected = 6 * (dense + experts) + 12 * dense / 4 + 12 * experts / 2;
    EXPECT_NEAR(static_cast<double>(model_states(plan)), static_cast<double>(expected), 6 * 64.0 * 16);
}

TEST(Megatron, TensorParallelRanksHoldEqualShares) {
    const Plan one = make_plan(megatron_scenario("llama", {}));
    const Plan four = make_plan(megatron_scenario("llama", {.tensor = 4}));
    EXPECT_LT(model_states(four), model_states(one) / 4 + model_states(one) / 100);
}

TEST(Megatron, WorkspacesAreNamedConstants) {
    const Plan plan = make_plan(megatron_scenario("gpt", {}));
    std::uint64_t workspace = 0;
    for (const Constant& constant : plan.constants)
        if (constant.name.ends_with("workspace_bytes"))
            workspace += static_cast<std::uint64_t>(constant.value);
    EXPECT_EQ(workspace, (32U + 32U) * (1U << 20) + 1024U);  // PyTorch's and Transformer Engine's on Hopper
}

TEST(Megatron, OneProgramAStageCoversEveryRank) {
    const Plan plan =
        make_plan(megatron_scenario("llama", {.tensor = 2, .pipeline = 4, .data = 2, .micro_batches = 8}));
    ASSERT_EQ(plan.rank_groups.size(), 4U);
    EXPECT_EQ(to_string(plan.rank_groups[0].ranks), "0-3");
    EXPECT_EQ(to_string(plan.rank_groups[3].ranks), "12-15");
}

TEST(Megatron, EarlierStagesKeepMoreMicroBatches) {
    const Plan plan =
        make_plan(megatron_scenario("llama", {.pipeline = 4, .micro_batches = 8, .tied = false}));
    const auto activations = [&](std::size_t g) {
        return plan.rank_groups[g].steady.at_peak[Category::activations].count();
    };
    EXPECT_GT(activations(1), activations(2));
}

TEST(Megatron, MoreMicroBatchesThanInFlightCostNothing) {
    for (const std::uint64_t chunks : {1ULL, 2ULL}) {
        const auto peak = [&](std::uint64_t micro_batches) {
            return make_plan(megatron_scenario(
                                 "gpt", {.pipeline = 4, .chunks = chunks, .micro_batches = micro_batches}))
                .rank_groups[0]
                .steady.allocated;
        };
        EXPECT_EQ(peak(8), peak(16)) << chunks;
        EXPECT_EQ(peak(16), peak(64)) << chunks;
    }
}

TEST(Megatron, FullRecomputeKeepsLessThanNone) {
    const auto peak = [](Recompute recompute) {
        return make_plan(
                   megatron_scenario("gpt", {.recompute = recompute, .attention = AttentionKernel::eager}))
            .rank_groups[0]
            .steady.allocated;
    };
    EXPECT_LT(peak(Recompute::selective), peak(Recompute::none));
    EXPECT_LT(peak(Recompute::full), peak(Recompute::selective));
}

TEST(Megatron, OldVersionsKeepSixteenBitGradientsTwice) {
    Scenario scenario = megatron_scenario(
        "gpt", {.data = 1, .micro_batches = 4, .compute = DType::fp16, .engine_version = "megatron-lm 2021"});
    scenario.training.gradient_dtype = scenario.training.reduce_dtype = DType::fp16;
    const Plan plan = make_plan(scenario);
    EXPECT_EQ(plan.rule_set, "megatron-lm 2021");
    EXPECT_EQ(model_states(plan), 20 * scenario.model.parameter_count());
    EXPECT_GE(plan.rank_groups[0].steady.at_peak[Category::gradients].count(),
              8 * scenario.model.parameter_count());
}

TEST(Megatron, ProgramsAreSound) {
    std::vector<MegatronCase> cases{{}, {.micro_batches = 5}, {.zero_stage = 1, .micro_batches = 2}};
    for (const std::uint64_t chunks : {1ULL, 2ULL})
        for (const std::uint64_t micro_batches : {1ULL, 2ULL, 4ULL, 8ULL})
            cases.push_back({.tensor = 2, .pipeline = 4, .chunks = chunks, .micro_batches = micro_batches});
    cases.push_back({.pipeline = 4, .micro_batches = 6, .schedule = PipelineSchedule::gpipe});
    for (const Recompute recompute : {Recompute::selective, Recompute::full})
        cases.push_back({.pipeline = 2, .micro_batches = 4, .recompute = recompute, .dropout = true});
    cases.push_back({.tensor = 2,
                     .pipeline = 2,
                     .sequence = true,
                     .micro_batches = 4,
                     .attention = AttentionKernel::eager});
    cases.push_back({.pipeline = 2,
                     .micro_batches = 4,
                     .recompute = Recompute::full,
                     .engine_version = "megatron-lm 2021"});
    cases.push_back({.megatron_json = R"({"gradient_accumulation_fusion": false})"});
    for (const char* family : {"gpt", "llama", "deepseek"}) {
        for (std::size_t i = 0; i < cases.size(); ++i) {
            const EngineOutput output = megatron_engine(megatron_scenario(family, cases[i]));
            for (std::size_t p = 0; p < output.programs.size(); ++p)
                EXPECT_EQ(hazards(output.programs[p]), std::vector<std::string>{})
                    << family << " case " << i << " stage " << p;
        }
    }
}

TEST(Megatron, RefusesAnUnknownOptionByName) {
    const Scenario scenario = megatron_scenario("gpt", {.megatron_json = R"({"overlap_grad_reduse": true})"});
    try {
        make_plan(scenario);
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(error.hint().find("overlap_grad_reduce"), std::string::npos);
        EXPECT_EQ(error.place().pointer, "/training/megatron/overlap_grad_reduse");
    }
}

}  // namespace
}  // namespace zeroplan
