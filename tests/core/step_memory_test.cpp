#include "zeroplan/step_memory.hpp"

#include <gtest/gtest.h>

#include "zeroplan/io.hpp"
#include "zeroplan/trace.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;

/// What the hand-made program below does, in this order: keeps 1 MiB, and twice allocates 19.5 MiB for a
/// module and frees it again.
enum Buffers : BufferId { kept, used };

Plan plan_by_hand(AllocatorKind allocator) {
    const auto host = [](OperationBody body) { return Operation{std::move(body), Stream::compute, {}}; };
    StepProgram program;
    program.buffers = {
        {BufferRole::parameters, Category::parameters, DType::uint8, 0, 0, mib},
        {BufferRole::activation, Category::activations, DType::uint8, 0, 0, 19 * mib + mib / 2}};
    program.load = {"load", 1, {host(Allocate{kept})}};
    program.init = {"init", 1, {}};
    program.save = {"save", 1, {}};
    program.step = {{"micro_batch", 2, {host(Allocate{used}), host(Free{used})}}};
    Plan plan;
    plan.allocator = allocator;
    plan.programs = {program};
    plan.rank_groups = {RankGroup{}};
    return plan;
}

TEST(StepMemory, RoundsToTheArenasGranule) {
    const StepMemory memory = step_memory(plan_by_hand(AllocatorKind::arena), 0);
    EXPECT_EQ(memory.before.total(), Bytes{mib});
    ASSERT_EQ(memory.sections.size(), 1U);
    ASSERT_EQ(memory.sections[0].runs.size(), 1U);  // all runs are alike
    const auto samples = memory.sections[0].of_iteration(7);
    ASSERT_EQ(samples.size(), 2U);
    EXPECT_EQ(samples[0].live.total(), Bytes{20 * mib + mib / 2});
    EXPECT_EQ(samples[1].live.total(), Bytes{mib});
    EXPECT_EQ(memory.peak(), Bytes{20 * mib + mib / 2});
}

// 19.5 MiB get a segment of 20 MiB, of which the 0.5 MiB left over are not split off.
TEST(StepMemory, CountsWholeBlocksOfTheCachingAllocator) {
    const StepMemory memory = step_memory(plan_by_hand(AllocatorKind::caching), 0);
    ASSERT_EQ(memory.sections[0].runs.size(), 2U);
    EXPECT_EQ(memory.sections[0].of_iteration(0)[0].live[Category::activations], Bytes{20 * mib});
    EXPECT_EQ(memory.sections[0].of_iteration(0)[0].operation, 0U);
    EXPECT_EQ(memory.peak(), Bytes{21 * mib});
}

// A first run may find other blocks than the second, which all later ones resemble.
TEST(SectionMemory, TellsTheRunsApart) {
    const auto sample = [](std::uint64_t bytes) {
        MemorySample at;
        at.live[Category::activations] = Bytes{bytes};
        return at;
    };
    const SectionMemory memory{{{sample(3)}, {sample(2)}}};
    EXPECT_EQ(memory.of_iteration(0)[0].live.total(), Bytes{3});
    EXPECT_EQ(memory.of_iteration(1)[0].live.total(), Bytes{2});
    EXPECT_EQ(memory.of_iteration(9)[0].live.total(), Bytes{2});
    EXPECT_EQ(memory.fullest()[0].live.total(), Bytes{3});
    EXPECT_TRUE(SectionMemory{}.fullest().empty());
}

class StepMemoryByEngine : public testing::TestWithParam<const char*> {};

Plan plan_of(const std::string& training) {
    return make_plan(
        resolve_scenario({"",
                          R"({"model": {"preset": "gpt2"}, "training": {)" + training +
                              R"(, "gradient_accumulation_steps": 3}, "cluster": {"topology": "dgx-h100"}})",
                          {}}));
}

TEST_P(StepMemoryByEngine, ReachesThePlansPeak) {
    const Plan plan = plan_of(GetParam());
    for (std::uint32_t g = 0; g < plan.rank_groups.size(); ++g)
        EXPECT_EQ(step_memory(plan, g).peak(), plan.rank_groups[g].steady.allocated) << g;
}

// The trace and the window draw it over time: the closed form lists at least two runs of every section.
TEST_P(StepMemoryByEngine, ReachesItOverTime) {
    const Plan plan = plan_of(GetParam());
    StepTimeline timeline;
    try {
        timeline = closed_form_step(plan);
    } catch (const Error& error) {  // no time, and so nothing over it
        EXPECT_EQ(error.code(), ErrorCode::not_supported) << error.what();
        return;
    }
    Bytes highest;
    for (const MemoryPoint& point : memory_over_time(plan, 0, timeline))
        highest = std::max(highest, point.live.total());
    EXPECT_EQ(highest, plan.rank_groups[0].steady.allocated);
}

INSTANTIATE_TEST_SUITE_P(Engines, StepMemoryByEngine,
                         testing::Values(R"("engine": "native", "zero_stage": 3)", R"("engine": "ddp")",
                                         R"("engine": "ddp_zero_optimizer")", R"("engine": "fsdp1")",
                                         R"("engine": "fsdp2")", R"("engine": "deepspeed", "zero_stage": 2)",
                                         R"("engine": "deepspeed", "zero_stage": 3)",
                                         R"("engine": "megatron", "tensor_parallel": 2)",
                                         R"("engine": "megatron", "pipeline_parallel": 4)"));

TEST(StepMemory, ReachesThePeakOfASingleGpu) {
    const Plan plan =
        make_plan(resolve_scenario({"",
                                    R"({"model": {"preset": "gpt2"}, "training": {"engine": "single"},
                 "cluster": {"topology": "dgx-h100", "gpus_used": 1}})",
                                    {}}));
    EXPECT_EQ(step_memory(plan, 0).peak(), plan.rank_groups[0].steady.allocated);
}

}  // namespace
}  // namespace zeroplan
