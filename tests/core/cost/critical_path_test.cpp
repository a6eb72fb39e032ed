#include "zeroplan/critical_path.hpp"

#include <gtest/gtest.h>

#include <random>

#include "core/cost/random_program.hpp"
#include "core/cost/tiny_plan.hpp"

namespace zeroplan {
namespace {

using test::all_gather;
using test::on;
using test::reduce_scatter;

Operation forward(std::uint32_t block, std::vector<OperationId> waits = {}) {
    return on(Stream::compute, Compute{.block = block}, std::move(waits));
}
Operation backward(std::uint32_t block, std::vector<OperationId> waits = {}) {
    return on(Stream::compute, Compute{.block = block, .phase = ComputePhase::backward}, std::move(waits));
}

/// Operations at given times: section 0, iteration 0.
StepTimeline at(const std::vector<Operation>& operations,
                const std::vector<std::pair<double, double>>& times) {
    StepTimeline timeline;
    for (std::size_t i = 0; i < times.size(); ++i) {
        timeline.operations.push_back(
            {0, 0, static_cast<OperationId>(i), operations[i].stream, times[i].first, times[i].second});
        timeline.step_time_s = std::max(timeline.step_time_s, times[i].second);
    }
    return timeline;
}

TEST(CriticalPath, FollowsWhatLetsEachOperationStart) {
    // gather 0 | forward 0 | forward 1, which waits for gather 1 that is longer than forward 0
    const std::vector<Operation> operations{on(Stream::gather, all_gather(1000)),
                                            on(Stream::gather, all_gather(3000)), forward(0, {0}),
                                            forward(1, {1})};
    StepProgram program;
    program.step = {{"step", 1, operations}};
    const auto path = critical_path(program, at(operations, {{0, 1}, {1, 4}, {1, 3}, {4, 6}}));
    ASSERT_EQ(path.size(), 3U);
    EXPECT_EQ(path[0].operation, 0U);
    EXPECT_EQ(path[1].operation, 1U);
    EXPECT_EQ(path[2].operation, 3U);
}

TEST(CriticalPath, PrefersTheOwnStreamAndShowsGaps) {
    const std::vector<Operation> operations{forward(0), on(Stream::gather, all_gather(1000)), forward(1, {1}),
                                            forward(2)};
    StepProgram program;
    program.step = {{"step", 1, operations}};
    const auto path = critical_path(program, at(operations, {{0.5, 2}, {1, 2}, {2, 3}, {4, 5}}));
    ASSERT_EQ(path.size(), 5U);
    EXPECT_FALSE(path[0].operation);  // nothing runs before 0.5
    EXPECT_EQ(path[1].operation, 0U);
    EXPECT_EQ(path[2].operation, 2U);
    EXPECT_FALSE(path[3].operation);
    EXPECT_DOUBLE_EQ(path[3].end_s - path[3].start_s, 1);
    EXPECT_EQ(path[4].operation, 3U);
}

TEST(CriticalPath, CoversTheStepWithoutGapsForAnyProgram) {
    std::mt19937 random(11);
    for (int i = 0; i < 50; ++i) {
        const Plan plan = test::test_plan(test::test_cluster(2),
                                          {{"step", 2, test::random_operations(random, Stream::gather)}},
                                          test::work_buffers);
        const StepTimeline step = closed_form_step(plan);
        double now = 0;
        for (const PathSpan& span : critical_path(plan.programs[0], step)) {
            EXPECT_NEAR(span.start_s, now, 1e-8 * step.step_time_s);
            now = span.end_s;
        }
        EXPECT_NEAR(now, step.step_time_s, 1e-12);
        double sum = 0;
        for (const PathPhase& phase : path_phases(plan, 0, step)) sum += phase.seconds;
        EXPECT_NEAR(sum, step.step_time_s, 1e-7 * step.step_time_s);
    }
}

TEST(PathPhases, GatherDelaysWhatFollowsAndReductionWhatItFollows) {
    const std::vector<Operation> operations{on(Stream::gather, all_gather(1'000'000)), forward(0, {0}),
                                            backward(0), on(Stream::reduce, reduce_scatter(1'000'000), {2}),
                                            on(Stream::compute, OptimizerStep{.elements = 1}, {3})};
    const Plan plan = test::test_plan(test::test_cluster(2), {{"micro_batch", 1, operations}}, {});
    const StepTimeline step = at(operations, {{0, 1}, {1, 3}, {3, 7}, {7, 9}, {9, 9.5}});
    const std::vector<PathPhase> phases = path_phases(plan, 0, step);
    ASSERT_EQ(phases.size(), 3U);
    EXPECT_EQ(phases[0].phase, "forward");
    EXPECT_DOUBLE_EQ(phases[0].seconds, 3);
    EXPECT_DOUBLE_EQ(phases[0].exposed_s.at("all_gather shard group"), 1);
    EXPECT_EQ(phases[0].longest_wait, "all_gather layers.0");
    EXPECT_EQ(phases[1].phase, "backward");
    EXPECT_DOUBLE_EQ(phases[1].exposed_s.at("reduce_scatter shard group"), 2);
    EXPECT_DOUBLE_EQ(phases[2].seconds, 0.5);
}

// Gathers alone bind: both forwards and the first backward end before the next block is there. While a
// forward runs beside one, it isn't exposed.
TEST(PathPhases, GatherBelongsToThePassThatWaitsForIt) {
    const std::vector<Operation> operations{on(Stream::gather, all_gather(1'000'000)),
                                            on(Stream::gather, all_gather(1'000'000)),
                                            forward(0, {0}),
                                            forward(1, {1}),
                                            on(Stream::gather, all_gather(1'000'000)),
                                            backward(0, {4})};
    const Plan plan = test::test_plan(test::test_cluster(2), {{"micro_batch", 1, operations}}, {});
    const StepTimeline step = at(operations, {{0, 2}, {2, 4}, {2, 3}, {4, 5}, {4, 6}, {6, 7}});
    const std::vector<PathPhase> phases = path_phases(plan, 0, step);
    ASSERT_EQ(phases.size(), 2U);
    EXPECT_EQ(phases[0].phase, "forward");
    EXPECT_DOUBLE_EQ(phases[0].seconds, 4);
    EXPECT_DOUBLE_EQ(phases[0].exposed_s.at("all_gather shard group"), 3);
    EXPECT_DOUBLE_EQ(phases[0].compute_s, 1);
    EXPECT_EQ(phases[1].phase, "backward");
    EXPECT_DOUBLE_EQ(phases[1].seconds, 3);
    EXPECT_DOUBLE_EQ(phases[1].exposed_s.at("all_gather shard group"), 1);
    EXPECT_DOUBLE_EQ(phases[1].compute_s, 2);
}

// A gather behind a cast on its stream: the cast is of the pass that the gather is of.
TEST(PathPhases, CastBeforeAGatherBelongsToThePassToo) {
    const std::vector<Operation> operations{on(Stream::gather, Accumulate{.from = {0}, .to = {0}}),
                                            on(Stream::gather, all_gather(1'000'000)), forward(0, {1}),
                                            backward(0)};
    const Plan plan = test::test_plan(test::test_cluster(2), {{"micro_batch", 1, operations}}, {});
    const std::vector<PathPhase> phases =
        path_phases(plan, 0, at(operations, {{0, 1}, {1, 3}, {3, 4}, {4, 6}}));
    ASSERT_EQ(phases.size(), 2U);
    EXPECT_EQ(phases[0].phase, "forward");
    EXPECT_DOUBLE_EQ(phases[0].seconds, 4);
    EXPECT_DOUBLE_EQ(phases[0].exposed_s.at("all_gather shard group"), 2);
    EXPECT_DOUBLE_EQ(phases[0].compute_s, 2);  // with the cast
}

TEST(PathPhases, CountsRepetitionsThatTheTimeLineLeavesOut) {
    const Plan plan = test::test_plan(test::test_cluster(2), {{"micro_batch", 100, {forward(0)}}}, {});
    const StepTimeline step = closed_form_step(plan);
    const std::vector<PathPhase> phases = path_phases(plan, 0, step);
    ASSERT_EQ(phases.size(), 1U);
    EXPECT_EQ(phases[0].times, 100U);
    EXPECT_NEAR(phases[0].compute_s, step.step_time_s, 1e-9 * step.step_time_s);
    EXPECT_EQ(phases[0].idle_s, 0);
}

}  // namespace
}  // namespace zeroplan
