#include "zeroplan/gui/memory_stack.hpp"

#include <gtest/gtest.h>

#include "gui/sample_plan.hpp"

namespace zeroplan::gui {
namespace {

TEST(MemoryStack, SumsToTheDevicePeak) {
    const Plan plan = test::uniform_plan(8);
    const MemoryStack stack = memory_stack(plan.rank_groups[0]);
    EXPECT_EQ(stack.allocated[Category::parameters], Bytes{1024});
    EXPECT_EQ(stack.allocated[Category::gradients], Bytes{512});
    EXPECT_EQ(stack.allocated[Category::activations], Bytes{2048});
    EXPECT_EQ(stack.slack, Bytes{256});
    EXPECT_EQ(stack.runtime, Bytes{4096});
    EXPECT_EQ(stack.total(), plan.rank_groups[0].peak_device);
}

TEST(OverallPeak, IsTheHighestPhaseButNotSave) {
    Plan plan = test::uniform_plan(8);
    plan.rank_groups[0].phases.push_back({Phase::load, Bytes{9000}, Bytes{9000}, {}});
    plan.rank_groups[0].phases.push_back({Phase::save, Bytes{20000}, Bytes{20000}, {}});
    EXPECT_EQ(overall_peak(plan.rank_groups[0]), (OverallPeak{Phase::load, Bytes{9000 + 4096}}));
}

TEST(DescribeRank, NamesEveryIngredientToTheByte) {
    const Plan plan = test::uniform_plan(64);
    EXPECT_EQ(plain_text(describe_rank(plan, 13, false)).toStdString(),
              "rank 13 (node 1, GPU 5), one of 64 alike\n"
              "device peak: 7,936 B\n"
              "runtime: 4,096 B\n"
              "reserved, not allocated: 256 B\n"
              "activations: 2,048 B\n"
              "gradients: 512 B\n"
              "parameters: 1,024 B\n"
              "allocated peak: 3,584 B\n"
              "8,448 B left of the capacity");
}

TEST(DescribeRank, SaysByHowMuchItIsOver) {
    const Plan plan = test::sample_plan({{{{0, 7}}, 2048, 0, 0, 0}}, 3000);
    EXPECT_EQ(describe_rank(plan, 0, true).closing.toStdString(), "Over the capacity by 584 B");
}

TEST(GroupOf, FindsTheRanksGroup) {
    const Plan plan = test::sample_plan({{{{0, 6}, {8, 8}}, 1024}, {{{7, 7}}, 2048}}, 9999);
    EXPECT_EQ(group_of(plan, 6), 0U);
    EXPECT_EQ(group_of(plan, 7), 1U);
    EXPECT_EQ(group_of(plan, 8), 0U);
}

}  // namespace
}  // namespace zeroplan::gui
