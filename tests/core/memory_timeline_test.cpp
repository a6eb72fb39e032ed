#include "zeroplan/memory_timeline.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

Buffer bytes(Category category, std::uint64_t count) {
    return {.category = category, .dtype = DType::uint8, .elements = count};
}

/// 0 is resident; 1 and 2 overlap for a moment.
StepProgram overlapping() {
    StepProgram program;
    program.buffers = {bytes(Category::parameters, 1000), bytes(Category::activations, 512),
                       bytes(Category::temporaries, 513)};
    program.step = {{"step", 1, {{Allocate{1}}, {Allocate{2}}, {Free{1}}, {Wait{}}, {Free{2}}}}};
    return program;
}

TEST(MemoryPeak, IsTheHighestTotalWithItsIngredients) {
    const StepProgram program = overlapping();
    const std::vector<BufferId> resident{0};
    const MemoryPeak peak = memory_peak(program, program.step, resident);
    EXPECT_EQ(peak.allocated, Bytes{1024 + 512 + 1024});  // each rounded up to 512
    EXPECT_EQ(peak.at_peak.total(), peak.allocated);
    EXPECT_EQ(peak.at_peak[Category::temporaries], Bytes{1024});
    EXPECT_EQ(peak.operation, 1U);
    EXPECT_EQ(peak.live, (std::vector<BufferId>{0, 1, 2}));
}

TEST(MemoryPeak, IsWhatIsResidentWhenNothingIsAllocated) {
    const StepProgram program = overlapping();
    const std::vector<BufferId> resident{0};
    EXPECT_EQ(memory_peak(program, {}, resident).allocated, Bytes{1024});
    EXPECT_EQ(memory_peak(program, {}, resident).live, resident);
}

TEST(MemoryPeak, RefusesAProgramThatFreesTwice) {
    StepProgram program = overlapping();
    program.step[0].operations.push_back({Free{2}});
    EXPECT_THROW(memory_peak(program, program.step, {}), Error);
    program.step[0].operations = {{Allocate{1}}, {Allocate{1}}};
    EXPECT_THROW(memory_peak(program, program.step, {}), Error);
}

TEST(MemoryTimeline, HasASampleForEveryChange) {
    const StepProgram program = overlapping();
    const auto samples = memory_timeline(program, program.step, {});
    ASSERT_EQ(samples.size(), 4U);
    EXPECT_EQ(samples[1].live.total(), Bytes{1536});
    EXPECT_EQ(samples[3].operation, 4U);
    EXPECT_EQ(samples[3].live.total(), Bytes{0});
}

TEST(ResidentBuffers, CountWhatTheFirstStepLeaves) {
    StepProgram program;
    program.buffers.resize(4);
    program.load.operations = {{Allocate{0}}};
    program.init.operations = {{Allocate{1}}};
    program.first_step = {{"first", 1, {{Allocate{2}}, {Allocate{3}}, {Free{2}}}}};
    EXPECT_EQ(resident_buffers(program), (std::vector<BufferId>{0, 1, 3}));
}

TEST(LiveAfter, IsBeforePlusAllocatedMinusFreed) {
    const StepProgram program = overlapping();
    const std::vector<BufferId> before{0};
    EXPECT_EQ(live_after(program.step, before), before);
}

}  // namespace
}  // namespace zeroplan
