#include "zeroplan/gui/rank_columns.hpp"

#include <gtest/gtest.h>

#include "gui/sample_plan.hpp"

namespace zeroplan::gui {
namespace {

// `count` ranks that alternate between two groups, of which the odd one needs more.
Plan alternating_plan(std::uint64_t count) {
    test::SampleGroup even{{}, 1024}, odd{{}, 4096};
    for (std::uint64_t rank = 0; rank < count; ++rank)
        (rank % 2 == 0 ? even : odd).ranks.push_back({rank, rank});
    return test::sample_plan({even, odd}, 65536);
}

TEST(RankColumns, FewRanksHaveABarEach) {
    const RankColumns columns = rank_columns(test::uniform_plan(16), 10, 640);
    EXPECT_EQ(columns.mode, ColumnMode::rank);
    ASSERT_EQ(columns.columns.size(), 16U);
    EXPECT_EQ(columns.columns[3].ranks, (RankRange{3, 3}));
    EXPECT_DOUBLE_EQ(columns.columns[3].slot, 10 + 3 * 40);
    for (const RankColumn& column : columns.columns) {
        EXPECT_GE(column.x, column.slot);
        EXPECT_LE(column.x + column.width, column.slot + column.slot_width);
    }
}

TEST(RankColumns, ManyEqualRanksAreOneBar) {
    const RankColumns columns = rank_columns(test::uniform_plan(16384), 0, 900);
    EXPECT_EQ(columns.mode, ColumnMode::group);
    ASSERT_EQ(columns.columns.size(), 1U);
    EXPECT_EQ(columns.columns[0].ranks, (RankRange{0, 16383}));
}

TEST(RankColumns, ManyGroupsFallBackToPixelsThatShowTheFullest) {
    std::vector<test::SampleGroup> groups;
    for (std::uint64_t g = 0; g < 64; ++g) groups.push_back({{{g * 256, g * 256 + 255}}, 1024 * (g % 3 + 1)});
    const RankColumns columns = rank_columns(test::sample_plan(groups, 65536), 0, 500);
    EXPECT_EQ(columns.mode, ColumnMode::pixel);
    EXPECT_LE(columns.columns.size(), 500U);
    EXPECT_EQ(columns.columns.front().ranks.first, 0U);
    EXPECT_EQ(columns.columns.back().ranks.last, 16383U);
}

TEST(RankColumns, APeakOfOneRankIsNeverLost) {
    std::vector<test::SampleGroup> groups{{{{0, 4999}, {5001, 16383}}, 1024}, {{{5000, 5000}}, 8192}};
    for (std::uint64_t g = 0; g < 16; ++g)
        groups.push_back({{}, 1024});  // so many groups that pixels are used
    const RankColumns columns = rank_columns(test::sample_plan(groups, 65536), 0, 300);
    ASSERT_EQ(columns.mode, ColumnMode::pixel);
    ASSERT_EQ(columns.columns.size(), 3U);
    EXPECT_EQ(columns.columns[1].group, 1U);
    EXPECT_DOUBLE_EQ(columns.columns[1].width, 1);
}

TEST(RankColumns, AlternatingGroupsStayTwoBars) {
    EXPECT_EQ(rank_columns(alternating_plan(16384), 0, 800).columns.size(), 2U);
}

TEST(RankColumns, NoRoomIsNoColumn) {
    EXPECT_TRUE(rank_columns(test::uniform_plan(8), 0, 0.5).columns.empty());
}

}  // namespace
}  // namespace zeroplan::gui
