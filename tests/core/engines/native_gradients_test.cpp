#include "engines/native_gradients.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

GradientPlan plan_of(std::uint32_t stage, std::uint64_t micro_batches,
                     std::optional<GradientSync> sync = std::nullopt) {
    TrainingConfig training;
    training.zero_stage = stage;
    training.gradient_accumulation_steps = micro_batches;
    training.fsdp.gradient_sync = sync;
    return gradient_plan(training);
}

// Whole gradients stay where nothing of them is sharded, or where they are summed before they are reduced.
TEST(NativeGradientPlan, FollowsStageAndSynchronisation) {
    EXPECT_TRUE(plan_of(0, 1).full_resident);
    EXPECT_FALSE(plan_of(0, 1).bucketed);
    EXPECT_TRUE(plan_of(1, 4, GradientSync::always).bucketed);
    EXPECT_TRUE(plan_of(1, 4, GradientSync::always).full_resident);
    EXPECT_TRUE(plan_of(2, 4).bucketed);
    EXPECT_FALSE(plan_of(2, 4).full_resident);
    EXPECT_FALSE(plan_of(2, 4, GradientSync::last).bucketed);
    EXPECT_TRUE(plan_of(2, 4, GradientSync::last).full_resident);
}

}  // namespace
}  // namespace zeroplan
