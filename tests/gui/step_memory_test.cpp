#include "zeroplan/gui/step_memory.hpp"

#include <gtest/gtest.h>

#include "gui/sample_plan.hpp"
#include "zeroplan/gui/fields.hpp"
#include "zeroplan/gui/planner.hpp"
#include "zeroplan/gui/request.hpp"

namespace zeroplan::gui {
namespace {

Bytes highest(const StepMemory& memory) {
    Bytes high;
    for (const StepMoment& moment : memory.moments) high = std::max(high, moment.live.total());
    return high;
}

TEST(StepMemory, ByOperationListsARepeatedSectionOnce) {
    const Plan plan = test::uniform_plan(8);
    const StepMemory memory = memory_by_operation(plan, 0);
    ASSERT_EQ(memory.sections.size(), 2U);
    EXPECT_EQ(memory.sections[0].name.toStdString(), "micro-batch × 2");
    EXPECT_DOUBLE_EQ(memory.sections[0].end, 9);
    EXPECT_DOUBLE_EQ(memory.end, 19);
    ASSERT_EQ(memory.moments.size(), 9U);  // what a step starts from, and 2 · (2 allocations + 2 releases)
    EXPECT_TRUE(memory.moments[0].before_step);
    EXPECT_EQ(memory.moments[0].live.total(), Bytes{1536});
    EXPECT_DOUBLE_EQ(memory.moments[2].at, 3);
    EXPECT_EQ(memory.moments[2].live.total(), Bytes{3584});
}

TEST(StepMemory, ReachesThePlansPeakUnderEveryEngine) {
    for (const std::string engine :
         {"native", "ddp", "ddp_zero_optimizer", "fsdp1", "fsdp2", "megatron", "single"}) {
        ScenarioRequest request = with(starting_request(), {"/training/engine", '"' + engine + '"', ""});
        request = edited(without(request, "/training/zero_stage"), nullptr, "/model", "gpt2");
        if (engine == "single") request = edited(request, nullptr, "/cluster/gpus_used", "1");
        const PlanOutcome outcome = plan_now(request);
        ASSERT_TRUE(outcome.planned) << engine << ": " << sentence(*outcome.error).toStdString();
        const Plan& plan = *outcome.planned->plan;
        const Bytes peak = plan.rank_groups[plan.memory.worst_group].steady.allocated;
        EXPECT_EQ(highest(outcome.planned->fullest.by_operation), peak) << engine;
        if (outcome.planned->timeline) {
            EXPECT_EQ(highest(outcome.planned->fullest.by_time), peak) << engine;
        }
    }
}

TEST(StepMemory, MomentAtHoldsUntilTheNext) {
    const StepMemory memory = memory_by_operation(test::uniform_plan(8), 0);
    EXPECT_EQ(memory.moment_at(-1), 0U);
    EXPECT_EQ(memory.moment_at(0.5), 0U);
    EXPECT_EQ(memory.moment_at(2.5), 1U);
    EXPECT_EQ(memory.moment_at(99), 8U);
}

TEST(StepMemory, ByTimeShowsEveryRepetitionWhereTheComputeStreamPasses) {
    const Plan plan = test::uniform_plan(8);
    const StepMemory memory = memory_by_time(plan, 0, test::sample_timeline(plan));
    EXPECT_EQ(memory.sections.size(), 3U);
    EXPECT_EQ(memory.moments.size(), 13U);
    EXPECT_DOUBLE_EQ(memory.moments[1].at, 0);
    EXPECT_DOUBLE_EQ(memory.moments[2].at, 2e-3);  // when the first forward has ended
    EXPECT_DOUBLE_EQ(memory.end, 16e-3);
    for (std::size_t i = 1; i < memory.moments.size(); ++i)
        EXPECT_GE(memory.moments[i].at, memory.moments[i - 1].at);
    EXPECT_EQ(memory.moments.back().live.total(), Bytes{1536});
}

TEST(DescribeMoment, NamesTheOperationAndEveryByte) {
    const Plan plan = test::uniform_plan(8);
    const StepMemory memory = memory_by_operation(plan, 0);
    EXPECT_EQ(plain_text(describe_moment(plan, 0, memory, memory.moments[2], false)).toStdString(),
              "allocate layers.1 output (activation, uint8)\n"
              "operation: 4 of 9, micro-batch × 2\n"
              "allocated: 3,584 B\n"
              "activations: 2,048 B\n"
              "gradients: 512 B\n"
              "parameters: 1,024 B");
    EXPECT_EQ(describe_moment(plan, 0, memory, memory.moments[0], false).heading.toStdString(),
              "between two steps");
}

}  // namespace
}  // namespace zeroplan::gui
