#include "zeroplan/gui/label_column.hpp"

#include <gtest/gtest.h>

namespace zeroplan::gui {
namespace {

TEST(LabelColumn, PlacesTextAboutItsMiddleInsideTheColumn) {
    LabelColumn column(0, 100, 10);
    EXPECT_EQ(column.place(50), 45);
    EXPECT_EQ(column.place(1), 0);
    EXPECT_EQ(column.place(99), 90);
}

TEST(LabelColumn, MovesTextThatWouldCoverOtherText) {
    LabelColumn column(0, 100, 10);
    EXPECT_EQ(column.place(50), 45);
    EXPECT_EQ(column.place(51), 56);
    EXPECT_EQ(column.place(49), 34);
    EXPECT_EQ(column.place(50), std::nullopt);
}

TEST(LabelColumn, KeepsALineFree) {
    LabelColumn column(0, 100, 10);
    column.keep_free(50);
    EXPECT_EQ(column.place(50), 55);
}

}  // namespace
}  // namespace zeroplan::gui
