#include "zeroplan/gui/rank_memory_view.hpp"

#include <gtest/gtest.h>

#include <QAccessible>
#include <QSignalSpy>
#include <QTest>

#include "gui/sample_plan.hpp"
#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {
namespace {

class RankMemoryViewTest : public testing::Test {
protected:
    void show(Plan plan) {
        view.resize(900, 300);
        view.set_plan(std::make_shared<const Plan>(std::move(plan)));
        view.grab();
    }
    QPoint middle_of(std::uint64_t rank) {
        for (int x = 0; x < view.width(); ++x)
            if (view.rank_at(QPointF(x, 150)) == rank) return {x + 3, 150};
        return {};
    }
    RankMemoryView view;
};

TEST_F(RankMemoryViewTest, HoveringSaysTheRanksBytes) {
    show(test::uniform_plan(16));
    const auto said = view.describe_at(middle_of(9));
    ASSERT_TRUE(said);
    EXPECT_EQ(plain_text(*said), plain_text(describe_rank(test::uniform_plan(16), 9, false)));
    EXPECT_FALSE(view.describe_at({2, 150}));
}

TEST_F(RankMemoryViewTest, ClickAndKeysSelectRanks) {
    show(test::uniform_plan(16));
    QSignalSpy selected(&view, &RankMemoryView::rank_selected);
    QTest::mouseClick(&view, Qt::LeftButton, {}, middle_of(5));
    EXPECT_EQ(view.selected_rank(), 5U);
    QTest::keyClick(&view, Qt::Key_Right);
    EXPECT_EQ(view.selected_rank(), 6U);
    QTest::keyClick(&view, Qt::Key_PageDown);
    EXPECT_EQ(view.selected_rank(), 14U);
    QTest::keyClick(&view, Qt::Key_End);
    EXPECT_EQ(view.selected_rank(), 15U);
    QTest::keyClick(&view, Qt::Key_Right);
    EXPECT_EQ(view.selected_rank(), 15U);
    QTest::keyClick(&view, Qt::Key_PageUp);
    QTest::keyClick(&view, Qt::Key_Left);
    EXPECT_EQ(view.selected_rank(), 6U);
    QTest::keyClick(&view, Qt::Key_P);
    EXPECT_EQ(view.selected_rank(), 0U);
    EXPECT_EQ(selected.count(), 7);
}

TEST_F(RankMemoryViewTest, KeysStepThroughGroupsWhereBarsAreGroups) {
    show(test::sample_plan({{{{0, 4095}}, 1024}, {{{4096, 8191}}, 2048}}, 65536));
    ASSERT_EQ(view.mode(), ColumnMode::group);
    QTest::keyClick(&view, Qt::Key_Right);
    EXPECT_EQ(view.selected_rank(), 4096U);
    QTest::keyClick(&view, Qt::Key_P);
    EXPECT_EQ(view.selected_rank(), 4096U);
}

TEST_F(RankMemoryViewTest, AScreenReaderHearsTheNumbers) {
    show(test::uniform_plan(16));
    auto* accessible = QAccessible::queryAccessibleInterface(&view);
    ASSERT_NE(accessible, nullptr);
    EXPECT_EQ(accessible->text(QAccessible::Name).toStdString(), "Memory per rank");
    EXPECT_TRUE(accessible->text(QAccessible::Description).contains("parameters: 1,024 B"));
}

// Rectangles, not time: what a repaint costs is bounded by pixels and categories, whatever the number of
// ranks.
TEST_F(RankMemoryViewTest, ARepaintIsBoundedByPixels) {
    show(test::uniform_plan(128));
    EXPECT_LE(view.drawn_rectangles(), 128U * 11);
    show(test::uniform_plan(1024));
    EXPECT_LE(view.drawn_rectangles(), 11U);
    show(test::uniform_plan(16384));
    EXPECT_LE(view.drawn_rectangles(), 11U);

    std::vector<test::SampleGroup> groups;  // every rank its own group: the worst case
    for (std::uint64_t rank = 0; rank < 16384; ++rank)
        groups.push_back({{{rank, rank}}, 1024 * (rank % 7 + 1)});
    show(test::sample_plan(groups, 65536));
    EXPECT_EQ(view.mode(), ColumnMode::pixel);
    EXPECT_LE(view.drawn_rectangles(), 900U * 11);
}

TEST_F(RankMemoryViewTest, WhatIsOverTheCapacityIsHatched) {
    show(test::sample_plan({{{{0, 0}}, 65536}}, 32768));
    const QImage image = view.grab().toImage();
    const QColor red = overflow_colour(false);
    int hatched = 0;
    for (int y = 0; y < image.height(); ++y)
        for (int x = static_cast<int>(view.plot_rect().left()) + 5; x < view.plot_rect().left() + 80; ++x)
            hatched += image.pixelColor(x, y) == red ? 1 : 0;
    EXPECT_GT(hatched, 300);
}

TEST_F(RankMemoryViewTest, ATinyPlanIsScaledToItself) {
    show(test::sample_plan({{{{0, 3}}, 1024}}, 80'000'000'000));
    EXPECT_LT(view.needed_top(), 10000);
    show(test::sample_plan({{{{0, 3}}, 1024}}, 20'000));
    EXPECT_DOUBLE_EQ(view.needed_top(), 1.06 * 20'000);
    QTest::keyClick(&view, Qt::Key_Z);
    EXPECT_DOUBLE_EQ(view.needed_top(), 1.06 * 2560);
}

TEST_F(RankMemoryViewTest, FollowsTheDarkPalette) {
    show(test::uniform_plan(16));
    const QRgb light = view.grab().toImage().pixel(1, 1);
    view.setPalette(dark_palette());
    EXPECT_NE(view.grab().toImage().pixel(1, 1), light);
}

TEST_F(RankMemoryViewTest, NothingToShowIsNoCrash) {
    view.resize(300, 200);
    view.set_placeholder("nothing yet");
    view.grab();
    QTest::keyClick(&view, Qt::Key_Right);
    QTest::mouseClick(&view, Qt::LeftButton);
    EXPECT_FALSE(view.rank_at({150, 100}));
}

}  // namespace
}  // namespace zeroplan::gui
