#include <gtest/gtest.h>

#include "core/engines/torch_scenarios.hpp"
#include "engines/llm_c_memory.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {
namespace {

Scenario llm_c(std::uint64_t ranks, std::uint32_t stage) {
    Scenario scenario = torch_scenario(
        EngineKind::llm_c, build_gpt2(gpt2_config(50304), torch_lowering(Kernels::fused)), ranks, stage);
    TrainingConfig& training = scenario.training;
    training.compute_dtype = training.parameter_dtype = training.gradient_dtype = training.reduce_dtype =
        DType::bf16;
    training.master_dtype = DType::fp32;
    training.kernels = Kernels::fused;
    training.attention = AttentionKernel::flash;
    training.sequence_length = 1024;
    training.micro_batch_size = 4;
    return scenario;
}

constexpr double mib = 1 << 20;

// llm.c pull request 309: GPT-2 124M with a padded vocabulary, 124,475,904 parameters: 237 MiB of parameters
// and of gradients, 474 MiB of each moment on one GPU, an eighth of that on eight.
TEST(LlmC, AllocatesWhatItPrints) {
    const Plan plan = make_plan(llm_c(1, 0));
    EXPECT_EQ(plan.scenario.model.parameter_count(), 124'475'904U);
    const CategoryBytes& live = plan.rank_groups.front().steady.at_peak;
    EXPECT_NEAR(static_cast<double>(live[Category::parameters].count()) / mib, 237.4, 0.05);
    EXPECT_NEAR(static_cast<double>(live[Category::gradients].count()) / mib, 237.4, 0.05);
    EXPECT_NEAR(static_cast<double>(live[Category::optimizer_states].count()) / mib, 2 * 474.8, 0.1);
    EXPECT_NEAR(static_cast<double>(live[Category::master_weights].count()) / mib, 474.8, 0.05);
}

TEST(LlmC, DividesStatesAtStageOne) {
    const Plan plan = make_plan(llm_c(8, 1));
    const CategoryBytes& live = plan.rank_groups.front().steady.at_peak;
    EXPECT_NEAR(static_cast<double>(live[Category::optimizer_states].count()) / mib, 2 * 59.35, 0.05);
    EXPECT_NEAR(static_cast<double>(live[Category::parameters].count()) / mib, 237.4, 0.05);
}

TEST(LlmC, FallsBackToStageZeroWhereRanksDontDivide) {
    const Plan plan = make_plan(llm_c(5, 1));
    EXPECT_EQ(plan.warnings.front().code, "zero_disabled");
    EXPECT_NEAR(
        static_cast<double>(plan.rank_groups.front().steady.at_peak[Category::optimizer_states].count()) /
            mib,
        2 * 474.8, 0.1);
}

TEST(LlmC, CountsActivationsByRecomputeLevel) {
    const DecoderConfig model = gpt2_config(50304);
    TrainingConfig training = llm_c(1, 0).training;
    const std::uint64_t tokens = 4 * 1024, width = 768, layers = 12;
    const LlmCActivations all = llm_c_activations(model, training);
    // 16 widths a layer, 7 once; 4 statistics and one a head; the output holds the padded vocabulary.
    EXPECT_EQ(all.compute, tokens * width * (16 * layers + 7));
    EXPECT_EQ(all.fp32, tokens * (layers * (4 + 12) + 3));
    EXPECT_EQ(all.output, tokens * 50304);
    training.recompute = Recompute::selective;
    EXPECT_EQ(llm_c_activations(model, training).compute, tokens * width * (12 * layers + 11));
    training.recompute = Recompute::full;
    EXPECT_EQ(llm_c_activations(model, training).compute, tokens * width * (10 * layers + 11));
    training.attention = AttentionKernel::eager;
    EXPECT_EQ(llm_c_activations(model, training).compute,
              tokens * (width * (10 * layers + 11) + layers * 12 * 1024));
}

TEST(LlmC, TrainsGpt2Alone) {
    Scenario scenario = llm_c(1, 0);
    scenario.model = build_llama(small_llama(), torch_lowering());
    EXPECT_THROW(make_plan(scenario), Error);
}

}  // namespace
}  // namespace zeroplan
