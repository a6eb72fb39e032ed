#include "engines/pipeline_schedule.hpp"

#include <gtest/gtest.h>

#include <set>

namespace zeroplan {
namespace {

using enum PipelineSchedule;

std::uint64_t in_flight(const PipelineShape& shape, std::uint32_t stage) {
    return peak_in_flight(pipeline_schedule(shape, stage));
}

TEST(PipelineSchedule, OneForwardOneBackwardHoldsOneMicroBatchMoreAStageEarlier) {
    const PipelineShape shape{one_f_one_b, 4, 1, 8};
    for (std::uint32_t stage = 0; stage < 4; ++stage) EXPECT_EQ(in_flight(shape, stage), 4 - stage);
}

TEST(PipelineSchedule, FewMicroBatchesBoundWhatIsInFlight) {
    EXPECT_EQ(in_flight({one_f_one_b, 64, 1, 4}, 0), 4U);
    EXPECT_EQ(in_flight({one_f_one_b, 64, 1, 4}, 62), 2U);
}

TEST(PipelineSchedule, GpipeHoldsEveryMicroBatch) {
    EXPECT_EQ(in_flight({gpipe, 4, 1, 8}, 3), 8U);
    EXPECT_EQ(in_flight({gpipe, 1, 1, 8}, 0), 1U);  // no pipeline, nothing to wait for
}

TEST(PipelineSchedule, InterleavedFollowsMegatronsWarmUp) {
    // 2 (p − 1 − i) + (v − 1) p forwards first, and one more before the first backward.
    const PipelineShape shape{interleaved, 4, 3, 8};
    EXPECT_EQ(in_flight(shape, 0), 2 * 3 + 2 * 4 + 1U);
    EXPECT_EQ(in_flight(shape, 3), 2 * 4 + 1U);
    // With as many micro-batches as stages everything is warm-up on the first stage.
    EXPECT_EQ(in_flight({interleaved, 4, 3, 4}, 0), 12U);
}

TEST(PipelineSchedule, InterleavedTakesChunksInTurn) {
    const auto actions = pipeline_schedule({interleaved, 2, 2, 4}, 1);
    const std::vector<PipelineAction> first{{true, 0, 0},  {true, 1, 0}, {true, 0, 1},
                                            {false, 0, 1}, {true, 1, 1}, {false, 1, 1}};
    EXPECT_EQ(std::vector(actions.begin(), actions.begin() + 6), first);
}

TEST(PipelineSchedule, EveryMicroBatchGoesForwardThenBackwardOnce) {
    for (const PipelineShape& shape :
         {PipelineShape{one_f_one_b, 4, 1, 6}, PipelineShape{gpipe, 3, 1, 5},
          PipelineShape{interleaved, 4, 2, 8}, PipelineShape{interleaved, 4, 2, 6}}) {
        for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
            std::set<std::pair<std::uint32_t, std::uint32_t>> forward, backward;
            for (const PipelineAction& a : pipeline_schedule(shape, stage)) {
                EXPECT_TRUE(a.forward || forward.contains({a.micro_batch, a.chunk}));
                EXPECT_TRUE((a.forward ? forward : backward).insert({a.micro_batch, a.chunk}).second);
            }
            EXPECT_EQ(forward.size(), shape.micro_batches * shape.chunks);
            EXPECT_EQ(backward, forward);
        }
    }
}

}  // namespace
}  // namespace zeroplan
