#include "zeroplan/compare_stages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/stage_chart.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Plan plan_of(const std::string& model, const std::string& training, const std::string& cluster,
             std::vector<Setting> settings = {}) {
    return make_plan(resolve_scenario({"",
                                       R"({"model": {"preset": ")" + model + R"("}, "training": {)" +
                                           training + R"(}, "cluster": {)" + cluster + "}}",
                                       std::move(settings)}));
}

Bytes ingredient(const StagePoint& point, std::string_view name) {
    for (const auto& [known, bytes] : point.ingredients)
        if (known == name) return bytes;
    throw Error(ErrorCode::not_found, std::string(name));
}

TEST(CompareStages, PlansEveryStageOnEveryCount) {
    const Plan base = plan_of("gpt2", R"("zero_stage": 2, "sequence_length": 256)", "");
    const StageComparison comparison = compare_stages(base, {16, 4, 16});
    EXPECT_THAT(comparison.gpus, ElementsAre(4U, 16U));
    ASSERT_EQ(comparison.points.size(), 8U);
    for (const StagePoint& point : comparison.points) {
        const std::string cluster = point.gpus == 4 ? R"("gpus_used": 4)" : R"("nodes": 2)";
        const Plan same =
            plan_of("gpt2", R"("sequence_length": 256)", cluster,
                    {text_setting("/training/zero_stage", std::to_string(point.stage), "--zero")});
        EXPECT_EQ(point.peak_device, same.memory.overall_peak_device) << point.stage << " on " << point.gpus;
        EXPECT_EQ(point.verdict, same.memory.verdict);
        Bytes sum;
        for (const auto& [name, bytes] : point.ingredients) sum += bytes;
        EXPECT_EQ(sum, point.peak_device);
    }
}

TEST(CompareStages, StartsWithANodeAndDoublesIt) {
    const Plan linked = plan_of("gpt2", R"("sequence_length": 16)", R"("topology": "dgx-h100", "nodes": 3)");
    EXPECT_THAT(compare_stages(linked).gpus, ElementsAre(8U, 16U, 24U, 32U, 64U, 128U, 256U, 512U, 1024U));
}

TEST(CompareStages, SaysWhatGrewWhereAHigherStageTakesMore) {
    // On one GPU nothing is divided, and ZeRO 3 gathers a copy of every unit into a buffer of its own.
    const Plan plan = plan_of("gpt2", "", R"("gpus_used": 1)");
    const StageComparison comparison = compare_stages(plan, {1, 64});
    const auto found =
        std::find_if(comparison.costlier.begin(), comparison.costlier.end(),
                     [](const CostlierStage& stage) { return stage.lower == 0 && stage.higher == 3; });
    ASSERT_NE(found, comparison.costlier.end());
    EXPECT_THAT(found->gpus, ElementsAre(1U));
    const StagePoint &low = comparison.points[0], &high = comparison.points[6];
    EXPECT_EQ(found->more, high.peak_device - low.peak_device);
    const auto gathered = std::find_if(found->grown.begin(), found->grown.end(),
                                       [](const auto& part) { return part.first == "gathered_parameters"; });
    ASSERT_NE(gathered, found->grown.end());
    EXPECT_EQ(gathered->second, ingredient(high, "gathered_parameters"));
    for (const CostlierStage& stage : comparison.costlier)
        for (std::size_t i = 1; i < stage.grown.size(); ++i)
            EXPECT_GE(stage.grown[i - 1].second, stage.grown[i].second);
}

TEST(CompareStages, KeepsTheReasonOfAStageThatAnEngineLacks) {
    const Plan plan = plan_of("gpt2", R"("engine": "ddp", "sequence_length": 16)", "");
    const StageComparison comparison = compare_stages(plan, {8});
    EXPECT_EQ(comparison.points[0].refused, "");
    EXPECT_FALSE(comparison.points[3].refused.empty());
    EXPECT_TRUE(comparison.costlier.empty());
}

TEST(CompareStages, ReadsListsOfCounts) {
    EXPECT_THAT(parse_gpu_counts("8"), ElementsAre(8U));
    EXPECT_THAT(parse_gpu_counts("8,64,512"), ElementsAre(8U, 64U, 512U));
    for (const char* wrong : {"", "8,", ",8", "0", "-8", "8;16", "eight", "8 16"})
        EXPECT_THROW(parse_gpu_counts(wrong), Error) << wrong;
}

TEST(StageChart, PutsEveryStageAtItsPeak) {
    // Capacity 80 at the top, 0 at the bottom of 15 rows: 40 is in the middle.
    StageComparison comparison{.capacity = Bytes{80ULL << 30}, .gpus = {8, 16}};
    const std::uint64_t gib[4][2] = {{80, 80}, {60, 40}, {40, 20}, {20, 0}};
    for (std::uint32_t stage = 0; stage < 4; ++stage)
        for (std::size_t c = 0; c < 2; ++c)
            comparison.points.push_back({.stage = stage,
                                         .gpus = comparison.gpus[c],
                                         .peak_device = Bytes{(gib[stage][c] << 30) + (8ULL << 30)}});
    comparison.capacity = Bytes{88ULL << 30};
    const auto lines = stage_chart(comparison, 100);
    ASSERT_EQ(lines.size(), 18U);
    EXPECT_THAT(lines[0], HasSubstr("logarithmic"));
    comparison.points.back().peak_device = Bytes{16ULL << 30};
    const auto linear = stage_chart(comparison, 100);
    EXPECT_THAT(linear[0], testing::Not(HasSubstr("logarithmic")));
    EXPECT_THAT(linear[1], HasSubstr("88.00 │"));
    EXPECT_THAT(linear[1], HasSubstr("capacity"));
    EXPECT_THAT(linear[1], HasSubstr("0"));
    // 48 of 88 GiB: row 14 · 40 / 88 = 6.4 from the top.
    EXPECT_THAT(linear[7], HasSubstr("2"));
    EXPECT_THAT(linear[7], HasSubstr("1"));
    EXPECT_EQ(linear[linear.size() - 2], "              8       16 GPUs");
    EXPECT_EQ(linear.back(), "          0 1 2 3: ZeRO stage");
    EXPECT_TRUE(stage_chart(comparison, 20).empty());
}

}  // namespace
}  // namespace zeroplan
