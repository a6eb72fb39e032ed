#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/cost/pipeline_plan.hpp"
#include "zeroplan/collective_cost.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/rank_classes.hpp"
#include "zeroplan/simulate.hpp"
#include "zeroplan/step_timeline.hpp"

// The first and the last stage of a pipeline sum the gradients of an embedding that both hold.
namespace zeroplan {
namespace {

constexpr std::uint64_t elements = 500'000'000;  // 1 GB in bf16

bool is_tied_reduction(const Operation& operation) {
    const auto* c = std::get_if<Collective>(&operation.body);
    return c != nullptr && c->group == GroupKind::embedding_group;
}

/// Of a step's operations; rank groups have the order of the plan's.
std::vector<TimedOperation> tied_reductions(const Plan& plan, const SimReport& report, std::size_t group) {
    const StepProgram& program = plan.programs[plan.rank_groups[group].program];
    std::vector<TimedOperation> found;
    for (const TimedOperation& timed : report.rank_groups[group].operations)
        if (is_tied_reduction(program.step[timed.section].operations[timed.operation]))
            found.push_back(timed);
    return found;
}

double computed_until(const SimReport& report, std::size_t group) {
    double end = 0;
    for (const TimedOperation& timed : report.rank_groups[group].operations)
        if (timed.stream == Stream::compute) end = std::max(end, timed.end_s);
    return end;
}

CollectiveCost cost_of(const Plan& plan) {
    return collective_cost(CollectiveKind::all_reduce, Bytes{2 * elements}, {2, 2, 1, 1},
                           plan.scenario.cluster);
}

// Three stages of a node each. The last one's backward is over first, and waits.
TEST(TiedEmbedding, CopiesMeetOnceBothStagesHaveTheirGradients) {
    const Plan plan = test::tied_pipeline_plan({1, 1, 1}, 4, 10'000'000, elements);
    const SimReport report = simulate(plan);
    const auto first = tied_reductions(plan, report, 0), last = tied_reductions(plan, report, 2);
    ASSERT_EQ(first.size(), 1U);
    ASSERT_EQ(last.size(), 1U);
    EXPECT_EQ(first[0].start_s, last[0].start_s);
    EXPECT_EQ(first[0].end_s, last[0].end_s);
    EXPECT_LT(computed_until(report, 2), computed_until(report, 0));
    EXPECT_NEAR(first[0].start_s, computed_until(report, 0), 1e-12);
    EXPECT_NEAR(first[0].end_s - first[0].start_s, cost_of(plan).seconds(), 1e-9);
    EXPECT_NEAR(report.rank_groups[0].step_time_s, first[0].end_s, 1e-12);
    const std::vector<StepTimeline> closed = closed_form_steps(plan);
    for (std::size_t stage = 0; stage < closed.size(); ++stage) {
        const auto& simulated = report.rank_groups[stage].operations;
        ASSERT_EQ(simulated.size(), closed[stage].operations.size());
        for (std::size_t i = 0; i < simulated.size(); ++i)
            EXPECT_NEAR(simulated[i].end_s, closed[stage].operations[i].end_s, 1e-9 * first[0].end_s);
    }
}

// Nodes on switches of their own, 4 to 1: 8 pairs share 100 of 400 GB/s, 12.5 each.
TEST(TiedEmbedding, PairsShareWhatLeavesANode) {
    const Plan plan = test::tied_pipeline_plan({1, 1, 1}, 4, 10'000'000, elements);
    WhatIf what_if;
    what_if.leaf_switches = {1, 4};
    const SimReport report = simulate(plan, what_if).step;
    const CollectiveCost cost = cost_of(plan);
    const TimedOperation reduction = tied_reductions(plan, report, 0).front();
    EXPECT_NEAR(reduction.end_s - reduction.start_s,
                cost.start_s() + cost.nic_weight * cost.unit_bytes / 12.5e9, 1e-9);
}

TEST(TiedEmbedding, ASlowNicHoldsBackItsPair) {
    WhatIf what_if;
    what_if.slow_links = {{SlowLinkKind::nic, 17, 0.25}};
    const Plan whole = test::tied_pipeline_plan({1, 1, 1}, 4, 10'000'000, elements);
    const Plan plan = split_rank_groups(whole, rank_classes(whole, what_if));
    const SimReport report = simulate(plan, what_if).step;
    const CollectiveCost cost = cost_of(plan);
    const double nic_bytes = cost.nic_weight * cost.unit_bytes;
    std::size_t slow = 0;
    for (std::size_t g = 0; g < plan.rank_groups.size(); ++g)
        for (const TimedOperation& reduction : tied_reductions(plan, report, g)) {
            const std::uint64_t rank = plan.rank_groups[g].ranks.front().first;
            const bool is_slow = rank == 1 || rank == 17;
            slow += is_slow ? 1 : 0;
            const double seconds = reduction.end_s - reduction.start_s;
            if (is_slow)
                EXPECT_GT(seconds, nic_bytes / 12.5e9) << rank;
            else
                EXPECT_NEAR(seconds, cost.seconds(), 1e-9) << rank;
        }
    EXPECT_EQ(slow, 2U);
}

Plan plan_of(const std::string& training, const std::string& cluster) {
    ScenarioRequest request;
    request.text = R"({"model": {"preset": "gpt2-medium"}, "training": )" + training + R"(, "cluster": )" +
                   cluster + "}";
    return make_plan(resolve_scenario(request));
}

// Programs that wait for each other in messages and in this group end, and meet in it.
TEST(TiedEmbedding, RealPipelinesMeetInIt) {
    const std::string node = R"({"topology": "dgx-a100"})", two = R"({"topology": "dgx-a100", "nodes": 2})";
    const std::string megatron = R"({"engine": "megatron", "gradient_accumulation_steps": 8, )",
                      deepspeed = R"({"engine": "deepspeed", "gradient_accumulation_steps": 40, )",
                      fsdp = R"({"engine": "megatron_fsdp", "gradient_accumulation_steps": 8, )";
    const std::vector<std::pair<std::string, std::string>> jobs{
        {megatron + R"("pipeline_parallel": 2})", node},
        {megatron + R"("pipeline_parallel": 4, "zero_stage": 1})", node},
        {megatron + R"("pipeline_parallel": 8})", two},
        {megatron + R"("pipeline_parallel": 4, "virtual_pipeline": 3, "pipeline_schedule": "interleaved",
                       "zero_stage": 1, "megatron": {"overlap_grad_reduce": true, "overlap_param_gather": true}})",
         node},
        {megatron +
             R"("pipeline_parallel": 2, "tensor_parallel": 2, "sequence_parallel": true, "zero_stage": 1})",
         two},
        {megatron + R"("pipeline_parallel": 4, "tensor_parallel": 4, "compute_dtype": "fp16",
                       "engine_version": "megatron-lm 2021"})",
         two},
        {deepspeed + R"("pipeline_parallel": 2, "zero_stage": 1})", node},
        {deepspeed + R"("pipeline_parallel": 4, "tensor_parallel": 2, "zero_stage": 1})", two},
        {deepspeed + R"("pipeline_parallel": 4, "zero_stage": 1, "compute_dtype": "fp16"})", two},
        {deepspeed + R"("pipeline_parallel": 4, "zero_stage": 0, "compute_dtype": "fp16"})", two},
        {fsdp + R"("pipeline_parallel": 4, "zero_stage": 3})", two}};
    for (const auto& [training, cluster] : jobs) {
        SCOPED_TRACE(training);
        const Plan plan = plan_of(training, cluster);
        const SimReport report = simulate(plan);
        std::vector<TimedOperation> found;
        for (std::size_t g = 0; g < plan.rank_groups.size(); ++g)
            for (const TimedOperation& reduction : tied_reductions(plan, report, g))
                found.push_back(reduction);
        ASSERT_GE(found.size(), 2U);
        for (const TimedOperation& reduction : found) {
            EXPECT_GT(reduction.end_s, reduction.start_s);
            EXPECT_EQ(reduction.start_s, found.front().start_s);
        }
    }
}

}  // namespace
}  // namespace zeroplan
