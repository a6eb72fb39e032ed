#include "zeroplan/gui/rank_position.hpp"

#include <gtest/gtest.h>

namespace zeroplan::gui {
namespace {

TEST(RankPosition, CountsTensorContextDataPipeline) {
    const Degrees degrees{.tensor = 4, .context = 2, .data = 3, .stages = 2, .shard_group = 6};
    ASSERT_EQ(degrees.ranks(), 48U);
    // 29 = 1 + 4 · (1 + 2 · (0 + 3 · 1))
    EXPECT_EQ(rank_position(degrees, 29), (RankPosition{1, 1, 0, 1, 0, 7}));
    EXPECT_EQ(rank_position(degrees, 47), (RankPosition{3, 1, 2, 1, 0, 11}));
    EXPECT_EQ(position_words(degrees, 29), (QStringList{"tp 1", "cp 1", "pp 1", "dp 0"}));
}

TEST(RankPosition, ShardGroupsAreConsecutiveDataRanks) {
    const Degrees degrees{.tensor = 2, .context = 1, .data = 8, .stages = 1, .shard_group = 4};
    EXPECT_EQ(degrees.replicas(), 2U);
    EXPECT_EQ(rank_position(degrees, 7).replica, 0U);  // data rank 3
    EXPECT_EQ(rank_position(degrees, 8).replica, 1U);  // data rank 4
}

TEST(RankColour, TellsTheWidestSplitApart) {
    const auto check = [](const Degrees& degrees, RankColour by, std::uint64_t many, const char* last) {
        EXPECT_EQ(colour_by(degrees), by);
        EXPECT_EQ(colours(degrees), many);
        EXPECT_EQ(colour_name(degrees, many - 1).toStdString(), last);
        EXPECT_EQ(colour_of(degrees, 0), 0U);
        EXPECT_EQ(colour_of(degrees, degrees.ranks() - 1), many - 1);
    };
    check({8, 1, 2, 4, 2}, RankColour::stage, 4, "stage 3");
    check({1, 1, 16, 1, 8}, RankColour::replica, 2, "replica 1");
    check({4, 1, 4, 1, 4}, RankColour::tensor_group, 4, "tensor group 3");
    check({1, 1, 16, 1, 16}, RankColour::all_alike, 1, "one shard group of 16");
    check({8, 1, 1, 1, 1}, RankColour::all_alike, 1, "one tensor group of 8");
    check({1, 1, 8, 1, 1}, RankColour::all_alike, 1, "data-parallel ranks");
}

}  // namespace
}  // namespace zeroplan::gui
