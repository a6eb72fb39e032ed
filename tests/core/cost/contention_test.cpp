#include "zeroplan/contention.hpp"

#include <gtest/gtest.h>

#include "core/cost/tiny_plan.hpp"
#include "cost/program_run.hpp"

namespace zeroplan {
namespace {

CollectiveCost taking(double channels, double memory_bytes, double seconds) {
    CollectiveCost cost;
    cost.channels = channels;
    cost.memory_bytes = memory_bytes;
    cost.transfer_s = seconds;
    return cost;
}

TEST(GpuCapacity, IsTheGpusOrUsualForItsGeneration) {
    ClusterSpec cluster = test::test_cluster(1);
    // 0.85 of 1 TB/s; a Hopper GPU that doesn't state its multiprocessors has H100's.
    EXPECT_EQ(gpu_capacity(cluster), (GpuCapacity{132, 0.85e12}));
    cluster.gpu.multiprocessors = 114;
    EXPECT_EQ(gpu_capacity(cluster).blocks, 114);
    cluster.calibration.constants["collective_blocks_per_multiprocessor"] = 2;
    EXPECT_EQ(gpu_capacity(cluster).blocks, 228);
    cluster.gpu.is_host = true;
    EXPECT_EQ(gpu_capacity(cluster), GpuCapacity{});
}

TEST(SharesOf, AreBlocksOfMultiprocessorsAndBytesOfTheMemorysRate) {
    const GpuCapacity gpu{.blocks = 100, .memory_bytes_per_s = 1e12};
    // 6e11 bytes in 2 s are 3e11 a second.
    EXPECT_EQ(shares_of(taking(24, 6e11, 2), 2, gpu), (GpuShares{0.24, 0.3, 0}));
    CollectiveCost across = taking(24, 6e11, 2);
    across.nic_weight = 1;
    EXPECT_EQ(shares_of(across, 2, gpu), (GpuShares{0.24, 0, 0.3}));
    EXPECT_EQ(shares_of(taking(24, 6e11, 2), 2, {}), GpuShares{});
    EXPECT_EQ(shares_of({}, 0, gpu), GpuShares{});
}

TEST(SharesOf, OfTwoCollectivesShareTheLinkButNotTheBlocks) {
    GpuShares shares{0.25, 0.3, 0};
    shares.add({0.5, 0.4, 0});
    EXPECT_EQ(shares, (GpuShares{0.75, 0.4, 0}));
    shares.add({0, 0, 0.125});  // over the NIC, beside them
    EXPECT_DOUBLE_EQ(shares.memory(), 0.525);
}

TEST(SlowDown, IsOfWhatEachShareBounds) {
    // 6 of 10 s by multiprocessors, of which three quarters are left: 8; 3 by memory, half left: 6; 1 as is.
    EXPECT_DOUBLE_EQ(slow_down({10, 6, 3}, {0.25, 0.5, 0}), 1.5);
    EXPECT_EQ(slow_down({10, 6, 3}, {}), 1);
    EXPECT_EQ(slow_down({}, {0.5, 0.5, 0}), 1);
    // No more than nine of ten are ever taken.
    EXPECT_NEAR(slow_down({10, 10, 0}, {1.4, 0, 0}), 10, 1e-9);
}

TimedNode node(Stream stream, WorkTime work) {
    TimedNode result{.lane = static_cast<std::uint8_t>(stream)};
    result.set_work(work);
    return result;
}

/// Work of 10 s that multiprocessors bound, and collectives of 2 and 4 s that take half of them each.
TimedProgram work_and_collectives() {
    TimedProgram program;
    program.gpu = {.blocks = 100, .memory_bytes_per_s = 1e12};
    program.collectives = {{.cost = taking(50, 0, 2)}, {.cost = taking(50, 0, 4)}};
    TimedNode first = node(Stream::gather, {2}), second = node(Stream::gather, {4});
    first.collective = 0;
    second.collective = 1;
    program.sections = {{1, {node(Stream::compute, {10, 10, 0}), first, second}, {}}};
    return program;
}

TEST(ProgramRun, DoesHalfTheWorkWhileHalfOfTheGpuIsTaken) {
    // 6 s of collectives get 3 s of work done, 7 s are left.
    EXPECT_EQ(closed_form_times(work_and_collectives()), (NodeTimes{{0, 13}, {0, 2}, {2, 6}}));
}

TEST(ProgramRun, CountsCollectivesOnTwoStreamsTogether) {
    TimedProgram program = work_and_collectives();
    program.collectives[1].cost.channels = 25;
    program.sections[0].nodes[2].lane = static_cast<std::uint8_t>(Stream::reduce);
    // 2 s with a quarter of the GPU left, 2 s with three quarters: 0.5 + 1.5 s of work, 8 s are left.
    EXPECT_EQ(closed_form_times(program), (NodeTimes{{0, 12}, {0, 2}, {0, 4}}));
}

TEST(ProgramRun, SlowsDownNothingThatTheGpuDoesNotDo) {
    TimedProgram program = work_and_collectives();
    program.sections[0].nodes[0].lane = static_cast<std::uint8_t>(Stream::to_host);
    EXPECT_EQ(closed_form_times(program)[0], (NodeTime{0, 10}));
}

TEST(ProgramRun, StartsWhatWaitsForSlowWorkLater) {
    TimedProgram program = work_and_collectives();
    program.sections[0].nodes[2].after[static_cast<std::size_t>(Stream::compute)] = 0;
    // The second collective begins when the work has ended, at 2 + 9 s.
    EXPECT_EQ(closed_form_times(program), (NodeTimes{{0, 11}, {0, 2}, {11, 15}}));
}

}  // namespace
}  // namespace zeroplan
