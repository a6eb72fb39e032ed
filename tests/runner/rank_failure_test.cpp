#include "rank_failure.hpp"

#include <gtest/gtest.h>

namespace zeroplan::runner {
namespace {

TEST(RankFailure, GoesThroughAPipe) {
    const Error error(ErrorCode::not_supported, "message\nof two lines", "", {"file.json", "/run/data"});
    const auto back = decode_rank_failure(encode({error, true}));
    ASSERT_TRUE(back);
    EXPECT_TRUE(back->is_echo);
    EXPECT_EQ(back->error.code(), ErrorCode::not_supported);
    EXPECT_STREQ(back->error.what(), error.what());
    EXPECT_EQ(back->error.place(), error.place());
}

TEST(RankFailure, IsNothingIfTheRankSaidNothing) {
    EXPECT_FALSE(decode_rank_failure(""));
    EXPECT_FALSE(decode_rank_failure("3"));
}

}  // namespace
}  // namespace zeroplan::runner
