#include "printable.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

TEST(Printable, LeavesTextAsItIs) {
    for (const char* text :
         {"", "gpt2", "é – 日本語 🙂", "a\\x1b", "\xef\xbb\xbf", "\xf4\x8f\xbf\xbf"})
        EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatATerminalObeys) {
    EXPECT_EQ(printable("a\033[31mb"), R"(a\x1b[31mb)");
    EXPECT_EQ(printable("a\nb\rc\td"), R"(a\nb\rc\td)");
    EXPECT_EQ(printable(std::string_view("a\0b", 3)), R"(a\x00b)");
    EXPECT_EQ(printable("\x7f"), R"(\x7f)");
    EXPECT_EQ(printable("\xc2\x9b"), R"(\x9b)");  // CSI as U+009B
    EXPECT_EQ(printable("a\xe2\x80\xae"
                        "b"),
              R"(a\u{202e}b)");  // right-to-left override
}

TEST(Printable, EscapesWhatIsNoUtf8) {
    EXPECT_EQ(printable("\x9b"), R"(\x9b)");
    EXPECT_EQ(printable("\xc3"), R"(\xc3)");                          // cut off
    EXPECT_EQ(printable("\xc3("), R"(\xc3()");                        // no continuation
    EXPECT_EQ(printable("\xc0\x8a"), R"(\xc0\x8a)");                  // a newline in two bytes
    EXPECT_EQ(printable("\xe0\x80\x8a"), R"(\xe0\x80\x8a)");          // … and in three
    EXPECT_EQ(printable("\xed\xa0\x80"), R"(\xed\xa0\x80)");          // a surrogate
    EXPECT_EQ(printable("\xf4\x90\x80\x80"), R"(\xf4\x90\x80\x80)");  // beyond U+10FFFF
}

TEST(Shortened, CutsBetweenCharacters) {
    EXPECT_EQ(shortened("abc", 3), "abc");
    EXPECT_EQ(shortened("abcd", 3), "abc…");
    EXPECT_EQ(shortened("aéé", 2), "a…");
}

TEST(Fixed, SparesDigitsThatNobodyCounts) {
    EXPECT_EQ(fixed(1234.56, 1), "1234.6");
    EXPECT_EQ(fixed(1e300, 0), "1e+300");
    EXPECT_EQ(fixed(-1e300, 2), "-1e+300");
}

}  // namespace
}  // namespace zeroplan
