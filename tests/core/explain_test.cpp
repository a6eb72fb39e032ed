#include "zeroplan/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

Plan plan_of(const std::string& training, const std::string& cluster = "") {
    return make_plan(resolve_scenario(
        {"",
         R"({"model": {"preset": "gpt2"}, "training": {)" + training + R"(}, "cluster": {)" + cluster + "}}",
         {}}));
}

const IngredientScaling& of(const Explanation& explanation, const std::string& ingredient) {
    for (const IngredientScaling& row : explanation.ingredients)
        if (row.ingredient == ingredient) return row;
    throw Error(ErrorCode::not_found, "no " + ingredient);
}

Scaling scaling(const Explanation& explanation, const std::string& ingredient) {
    return of(explanation, ingredient).scaling;
}

TEST(Explain, AccountsForTheWholePeak) {
    for (const char* engine : {"native", "fsdp2"}) {
        const Plan plan = plan_of(R"("zero_stage": 3, "engine": ")" + std::string(engine) + "\"");
        const Explanation explanation = explain(plan);
        Bytes sum, live, categories;
        for (const IngredientScaling& row : explanation.ingredients) {
            sum += row.bytes;
            EXPECT_LE(row.divided, row.bytes);
            if (row.ingredient != "allocator_holes" && row.ingredient != "runtime") categories += row.bytes;
        }
        for (const LiveTensors& tensors : explanation.live) live += tensors.total;
        EXPECT_EQ(sum, plan.memory.overall_peak_device) << engine;
        EXPECT_EQ(live, categories) << engine;
    }
}

TEST(Explain, TellsWhatAStageDivides) {
    // Adam's 8 B, the fp32 master weights' 4 B, the gradients' 2 B and the parameters' 2 B, stage by stage.
    const auto at = [](const char* stage) {
        return explain(plan_of(R"("zero_stage": )" + std::string(stage)));
    };
    const Explanation zero = at("0"), one = at("1"), two = at("2"), three = at("3");
    EXPECT_EQ(scaling(zero, "optimizer_states"), Scaling::constant);
    for (const Explanation* explanation : {&one, &two, &three}) {
        EXPECT_EQ(scaling(*explanation, "optimizer_states"), Scaling::divided);
        EXPECT_EQ(scaling(*explanation, "master_weights"), Scaling::divided);
        EXPECT_EQ(scaling(*explanation, "activations"), Scaling::constant);
        EXPECT_EQ(of(*explanation, "activations").divided, Bytes{});
    }
    EXPECT_EQ(scaling(one, "gradients"), Scaling::constant);
    EXPECT_EQ(scaling(two, "gradients"), Scaling::divided);
    EXPECT_EQ(scaling(two, "parameters"), Scaling::constant);
    EXPECT_EQ(scaling(three, "parameters"), Scaling::divided);
    EXPECT_EQ(scaling(three, "gathered_parameters"), Scaling::constant);
    EXPECT_EQ(three.ranks, 8U);
    // 124,439,808 parameters · 8 B over 8 and over 16 ranks; units are padded to 8 elements a rank.
    EXPECT_NEAR(static_cast<double>(of(three, "optimizer_states").bytes.count()), 124439808.0, 2e4);
    EXPECT_NEAR(static_cast<double>(of(three, "optimizer_states").on_twice->count()), 62219904.0, 2e4);
}

TEST(Explain, PlansAgainOnTwiceTheRanks) {
    const Explanation explanation = explain(plan_of(R"("zero_stage": 3)"));
    const Plan twice = plan_of(R"("zero_stage": 3)", R"("nodes": 2)");
    ASSERT_TRUE(explanation.device_on_twice);
    EXPECT_EQ(*explanation.device_on_twice, twice.memory.overall_peak_device);
}

TEST(Explain, KeepsReplicasWhenTheShardGroupGrows) {
    const Explanation explanation =
        explain(plan_of(R"("zero_stage": 3, "shard_group": 4)", R"("topology": "dgx-h100")"));
    EXPECT_EQ(explanation.ranks, 4U);
    EXPECT_EQ(scaling(explanation, "optimizer_states"), Scaling::divided);
}

TEST(Explain, SaysWhyThereIsNoPlanWithTwiceTheRanks) {
    const Explanation explanation = explain(plan_of(R"("engine": "single")", R"("gpus_used": 1)"));
    EXPECT_FALSE(explanation.device_on_twice);
    EXPECT_FALSE(explanation.why_not_twice.empty());
    EXPECT_FALSE(explanation.ingredients.empty());
}

TEST(Explain, NamesLayersTogether) {
    const Explanation explanation = explain(plan_of(R"("zero_stage": 0)"));
    const auto found =
        std::find_if(explanation.live.begin(), explanation.live.end(), [](const LiveTensors& tensors) {
            return tensors.role == "parameters" && tensors.name == "transformer.h.0-11";
        });
    ASSERT_NE(found, explanation.live.end());
    // 12 layers of 7,087,872 parameters in bf16.
    EXPECT_EQ(found->count, 12U);
    EXPECT_EQ(found->dtype, DType::bf16);
    EXPECT_EQ(found->largest, Bytes{2 * 7087872});
    EXPECT_EQ(found->total, Bytes{12 * 2 * 7087872});
    EXPECT_TRUE(std::is_sorted(explanation.live.begin(), explanation.live.end(),
                               [](const auto& a, const auto& b) { return a.total > b.total; }));
}

TEST(Explain, WritesRangesOfNumbers) {
    EXPECT_EQ(number_ranges({}), "");
    EXPECT_EQ(number_ranges({7}), "7");
    EXPECT_EQ(number_ranges({0, 1, 2, 3, 7, 9, 10}), "0-3,7,9-10");
}

}  // namespace
}  // namespace zeroplan
