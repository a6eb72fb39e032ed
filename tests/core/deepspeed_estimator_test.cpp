#include "zeroplan/deepspeed_estimator.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using testing::HasSubstr;

/// "per CPU / per GPU" as DeepSpeed prints them.
std::vector<std::string> printed(const EstimatorInput& input) {
    std::vector<std::string> rows;
    for (const EstimatorRow& row : deepspeed_estimate(input))
        rows.push_back(fmt::format("{:.2f}/{:.2f}", row.cpu.gib(), row.gpu.gib()));
    return rows;
}

Plan plan_of(const std::string& training, std::vector<Setting> settings = {}) {
    return make_plan(resolve_scenario(
        {"", R"({"model": {"preset": "gpt2"}, "training": {)" + training + "}}", std::move(settings)}));
}

const EstimatorItem* find(const EstimatorComparison& comparison, const std::string& name) {
    for (const EstimatorItem& item : comparison.items)
        if (item.item == name) return &item;
    return nullptr;
}

// docs/code-docs/source/memory.rst of DeepSpeed: total_params=2851e6, largest_layer_params=32e6, 8 GPUs. Its
// table of ZeRO 2 is by the old formula; by the new one 2 · 2851e6 + 18 · 2851e6 / 8 = 12,116,750,000 B.
TEST(DeepSpeedEstimator, GivesTheTablesOfItsDocumentation) {
    EXPECT_THAT(
        printed({2851000000, 32000000, 8, 1}),
        testing::ElementsAre("127.45/5.31", "127.45/15.93", "127.45/5.31", "127.45/11.28", "71.69/0.12",
                             "127.45/0.12", "63.72/0.78", "127.45/0.78", "1.43/6.09", "127.45/6.09"));
}

// https://github.com/zai-org/ChatGLM-6B/issues/1442: what its user got for 6173M parameters on 4 GPUs.
TEST(DeepSpeedEstimator, GivesTheRowsThatAUserReported) {
    const auto rows = printed({6173286400, 534642688, 4, 1});
    EXPECT_EQ(rows[4], "155.23/1.99");
    EXPECT_EQ(rows[6], "137.98/4.87");
    EXPECT_EQ(rows[8], "11.95/27.86");
}

TEST(DeepSpeedEstimator, DividesTheHostsPartByNodes) {
    // 18 B · 1e9 · 1.5 over two nodes; 4 B · 8 GPUs a node are more where every rank loads the weights.
    const auto rows = deepspeed_estimate({1000000000, 1000000, 8, 2});
    EXPECT_EQ(rows[4].cpu, Bytes{13500000000});
    EXPECT_EQ(rows[5].cpu, Bytes{48000000000});
    EXPECT_EQ(rows[4].gpu, Bytes{4000000});
}

TEST(DeepSpeedEstimator, TakesTheLargestModuleAsTheLayer) {
    // gpt2's embedding: 50,257 · 768; the output layer is tied to it.
    const EstimatorInput input = estimator_input(plan_of("").scenario);
    EXPECT_EQ(input.total_params, 124439808U);
    EXPECT_EQ(input.largest_layer_params, 50257U * 768U);
    EXPECT_EQ(input.gpus_per_node, 8U);
    EXPECT_EQ(input.nodes, 1U);
}

TEST(DeepSpeedEstimator, SplitsBothFiguresToTheByte) {
    for (const char* stage : {"2", "3"}) {
        const Plan plan = plan_of("", {text_setting("/training/zero_stage", stage, "--zero")});
        const EstimatorComparison comparison = against_deepspeed_estimator(plan);
        ASSERT_TRUE(comparison.matching);
        EXPECT_FALSE(comparison.rows[*comparison.matching].old_formula);
        Bytes estimated, planned;
        for (const EstimatorItem& item : comparison.items) {
            estimated += item.estimated;
            planned += item.planned;
            EXPECT_FALSE(item.why.empty()) << item.item;
        }
        EXPECT_EQ(estimated, comparison.rows[*comparison.matching].gpu);
        EXPECT_EQ(planned, plan.memory.overall_peak_device);
    }
}

TEST(DeepSpeedEstimator, SaysWhyAPartDiffers) {
    const EstimatorComparison comparison = against_deepspeed_estimator(plan_of(R"("zero_stage": 2)"));
    ASSERT_NE(find(comparison, "gradients"), nullptr);
    EXPECT_EQ(find(comparison, "gradients")->estimated, Bytes{6 * 124439808ULL / 8});
    EXPECT_THAT(find(comparison, "gradients")->why, HasSubstr("fp32 gradients"));
    EXPECT_THAT(find(comparison, "master_weights")->why, HasSubstr("agreed"));
    EXPECT_EQ(find(comparison, "activations")->estimated, Bytes{});
    EXPECT_THAT(find(comparison, "activations")->why, HasSubstr("micro-batch 1 × 1,024 tokens"));
    const EstimatorComparison momentum =
        against_deepspeed_estimator(plan_of(R"("zero_stage": 2, "optimizer": "sgd_momentum")"));
    EXPECT_THAT(find(momentum, "optimizer_states")->why, HasSubstr("this is sgd_momentum"));
}

TEST(DeepSpeedEstimator, HasNoRowForLowerStages) {
    const EstimatorComparison comparison = against_deepspeed_estimator(plan_of(R"("zero_stage": 1)"));
    EXPECT_FALSE(comparison.matching);
    EXPECT_THAT(comparison.why_none, HasSubstr("stages 2 and 3 only"));
    EXPECT_EQ(comparison.rows.size(), 10U);
}

}  // namespace
}  // namespace zeroplan
