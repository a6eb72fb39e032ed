#include "nearest.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
    EXPECT_EQ(edit_distance("", "abc"), 3);
    EXPECT_EQ(edit_distance("hdiden", "hidden"), 1);
    EXPECT_EQ(edit_distance("Zero-Stage", "zero_stage"), 0);
}

TEST(Nearest, FindsTheWordMeantOrNothing) {
    const std::vector<std::string_view> words{"zero_stage", "optimizer", "engine"};
    EXPECT_EQ(nearest("zero_stgae", words), "zero_stage");
    EXPECT_EQ(nearest("optimiser", words), "optimizer");
    EXPECT_EQ(nearest("quantum", words), std::nullopt);
    EXPECT_EQ(nearest("", words), std::nullopt);
    EXPECT_EQ(nearest(std::string(100'000, 'x'), words), std::nullopt);
}

TEST(NearestHint, AsksOrListsAll) {
    const std::vector<std::string_view> words{"one", "two"};
    EXPECT_EQ(nearest_hint("onee", words), "did you mean \"one\"?");
    EXPECT_EQ(nearest_hint("qqqqqq", words), "known: one, two");
}

TEST(NearestHint, CompletesTheBeginningOfAWord) {
    const std::vector<std::string_view> words{"micro_batch_size", "h100-pcie-80gb", "h100-sxm-80gb"};
    EXPECT_EQ(nearest_hint("micro_batch", words), "did you mean \"micro_batch_size\"?");
    EXPECT_EQ(nearest_hint("H100", words), "did you mean one of: h100-pcie-80gb, h100-sxm-80gb?");
    EXPECT_EQ(nearest_hint("", words), "known: micro_batch_size, h100-pcie-80gb, h100-sxm-80gb");
}

}  // namespace
}  // namespace zeroplan
