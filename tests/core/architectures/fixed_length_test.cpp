#include "architectures/fixed_length.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

BlockKind kind_with(std::vector<Extent> extents) {
    BlockKind kind;
    for (const Extent& extent : extents) kind.tensors.push_back({.name = "t", .extent = extent});
    return kind;
}

TEST(FixLength, TurnsTokensAndPairsIntoASequencesShare) {
    BlockKind kind = kind_with({{.per_token = 3, .per_token_pair = 2, .constant = 5}});
    fix_length(kind, 10);
    EXPECT_EQ(kind.tensors[0].extent, (Extent{.constant = 5, .per_sequence = 3 * 10 + 2 * 100}));
    EXPECT_EQ(elements(kind.tensors[0].extent, 4, 999), 4U * 230 + 5);
}

TEST(FixLength, LeavesTensorsOfTheOtherLengthAndCrossesPairs) {
    BlockKind kind = kind_with({{.per_token = 3}, {.per_token = 7}, {.per_token_pair = 2}});
    kind.operators.push_back(
        {.name = "scores", .inputs = {0, 1}, .outputs = {2}, .forward_flops = {.per_token_pair = 6}});
    fix_length(kind, 10, {1}, {2});
    EXPECT_EQ(kind.tensors[1].extent, (Extent{.per_token = 7}));
    EXPECT_EQ(kind.tensors[2].extent, (Extent{.per_token = 20}));
    EXPECT_EQ(kind.operators[0].forward_flops, (Flops{.per_token = 60}));
}

}  // namespace
}  // namespace zeroplan
