#include "report/text_page.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

TEST(DisplayWidth, CountsCodePoints) {
    EXPECT_EQ(display_width(""), 0U);
    EXPECT_EQ(display_width("abc"), 3U);
    EXPECT_EQ(display_width("2 × µs █"), 8U);
}

TEST(Table, AlignsItsColumns) {
    Table table({"", "GiB", "what"});
    table.left(2).row({"a", "1.00", "×"}).rule().row({"long", "123.45"});
    EXPECT_EQ(table.lines(), (std::vector<std::string>{"         GiB  what", "a       1.00  ×",
                                                       "────────────", "long  123.45"}));
}

TEST(Table, WithoutTitlesHasNoTitleLine) {
    Table table({"", ""});
    EXPECT_TRUE(table.empty());
    table.row({"a", "1"});
    EXPECT_EQ(table.lines(), std::vector<std::string>{"a  1"});
}

TEST(TextPage, BreaksParagraphsAtSpaces) {
    TextPage page({.colour = false, .width = 30});
    page.paragraph("  note: ", "one two three four five six seven eight");
    EXPECT_EQ(page.take(), "  note: one two three four\n        five six seven eight\n");
}

TEST(TextPage, KeepsWordsLongerThanTheLine) {
    TextPage page({.colour = false, .width = 30});
    page.paragraph("> ", "a " + std::string(40, 'x') + " b");
    EXPECT_EQ(page.take(), "> a\n  " + std::string(40, 'x') + "\n  b\n");
}

TEST(TextPage, ColoursOnlyWhenAsked) {
    TextPage plain({.colour = false, .width = 80}), colourful({.colour = true, .width = 80});
    plain.line("fits", Colour::green);
    colourful.line("fits", Colour::green);
    EXPECT_EQ(plain.take(), "fits\n");
    EXPECT_EQ(colourful.take(), "\033[1;32mfits\033[0m\n");
}

TEST(Bar, IsDrawnInEighths) {
    EXPECT_EQ(bar(0, 4), "");
    EXPECT_EQ(bar(1, 4), "████");
    EXPECT_EQ(bar(0.5, 4), "██");
    EXPECT_EQ(bar(0.53125, 4), "██▏");
    EXPECT_EQ(bar(1e-9, 4), "▏");  // something is never shown as nothing
    EXPECT_EQ(bar(7, 4), "████");
}

}  // namespace
}  // namespace zeroplan
