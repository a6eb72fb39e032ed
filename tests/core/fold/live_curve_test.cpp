#include "fold/live_curve.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

std::vector<LiveMoment> moments(std::initializer_list<std::uint64_t> live) {
    std::vector<LiveMoment> result;
    for (const std::uint64_t bytes : live)
        result.push_back({result.size(), result.size() < 2 ? Phase::load : Phase::steady_step, Bytes{bytes}});
    return result;
}

/// 100 + 10 a block, 90 + 20 a block and a third that doesn't grow: the second overtakes the first.
TEST(LiveCurve, IsCarriedOnMomentByMoment) {
    const auto shorter = moments({110, 100, 50, 110}), longer = moments({120, 110, 50, 130});
    EXPECT_EQ(carried_on(shorter, longer, 0), (LivePeak{Bytes{110}, Phase::load}));
    EXPECT_EQ(carried_on(shorter, longer, 1), (LivePeak{Bytes{130}, Phase::steady_step}));
    EXPECT_EQ(carried_on(shorter, longer, 10), (LivePeak{Bytes{310}, Phase::steady_step}));
}

TEST(LiveCurve, IsNotCarriedOnWhereMomentsDiffer) {
    auto other = moments({120, 110, 50, 130});
    other[1].key = 7;
    EXPECT_FALSE(carried_on(moments({110, 100, 50, 110}), other, 1));
    EXPECT_FALSE(carried_on(moments({110, 100}), moments({120}), 1));
    EXPECT_FALSE(carried_on(moments({110}), moments({109}), 1));
}

TEST(LiveCurve, OverflowIsAnError) {
    EXPECT_THROW(carried_on(moments({1}), moments({std::uint64_t{1} << 62}), 8), Error);
}

/// Two units of 1,000 bytes and a step's 4,096 on top.
TEST(LiveCurve, FindsTheHighestOfAProgram) {
    StepProgram program;
    const auto allocate = [&](Section& section, std::uint64_t elements) {
        program.buffers.push_back({.dtype = DType::uint8, .elements = elements});
        const auto id = static_cast<BufferId>(program.buffers.size() - 1);
        section.operations.push_back({Allocate{id}, Stream::compute, {}});
        return id;
    };
    allocate(program.load, 1000);
    allocate(program.load, 1000);
    program.step.push_back({"micro_batch", 3, {}});
    const BufferId once = allocate(program.step[0], 4096);
    program.step[0].operations.push_back({Free{once}, Stream::compute, {}});
    EXPECT_EQ(highest_live(program), (LivePeak{Bytes{2 * 1024 + 4096}, Phase::first_step}));
}

}  // namespace
}  // namespace zeroplan
