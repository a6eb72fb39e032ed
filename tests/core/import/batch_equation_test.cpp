#include "import/batch_equation.hpp"

#include <gmock/gmock.h>

#include "core/json/error_of.hpp"

namespace zeroplan {
namespace {

using testing::HasSubstr;

TEST(BatchEquation, DerivesWhatIsAbsentAsDeepSpeedDoes) {
    EXPECT_EQ(complete({4096, 32, {}}, 4, {}), (BatchSizes{4096, 32, 32}));
    EXPECT_EQ(complete({256, {}, 8}, 4, {}), (BatchSizes{256, 8, 8}));
    EXPECT_EQ(complete({256, {}, {}}, 8, {}), (BatchSizes{256, 32, 1}));
    EXPECT_EQ(complete({{}, 4, 8}, 8, {}), (BatchSizes{256, 4, 8}));
    EXPECT_EQ(complete({{}, 4, {}}, 8, {}), (BatchSizes{32, 4, 1}));
}

TEST(BatchEquation, RefusesAContradictionWithTheWaysOut) {
    EXPECT_EQ(complete({256, 4, 8}, 8, {}), (BatchSizes{256, 4, 8}));
    const Error error = error_of([] { (void)complete({256, 4, 8}, 16, {"ds.json", "line 2"}); });
    EXPECT_EQ(error.place(), (ErrorPlace{"ds.json", "line 2"}));
    EXPECT_THAT(error.message(),
                HasSubstr("256 is not train_micro_batch_size_per_gpu 4 × gradient_accumulation_steps 8 × "
                          "16 data-parallel ranks = 512"));
    EXPECT_THAT(error.hint(), HasSubstr("train_batch_size 512"));
    EXPECT_THAT(error.hint(), HasSubstr("gradient_accumulation_steps 4"));
    EXPECT_THAT(error.hint(), HasSubstr("train_micro_batch_size_per_gpu 2"));
    EXPECT_THAT(error.hint(), HasSubstr("run on 8 ranks"));
}

TEST(BatchEquation, RefusesADivisionThatLeavesARest) {
    // DeepSpeed divides downwards, 100 / 32 / 4 = 0, and then its assertion fails.
    EXPECT_THAT(error_of([] {
                    (void)complete({100, 32, {}}, 4, {});
                }).message(),
                HasSubstr("leaves nothing"));
    EXPECT_THAT(error_of([] { (void)complete({130, 32, {}}, 4, {}); }).message(), HasSubstr("130 is not"));
    EXPECT_THAT(error_of([] { (void)complete({4, {}, {}}, 8, {}); }).message(), HasSubstr("leaves nothing"));
}

TEST(BatchEquation, SaysForHowManyRanksItHolds) {
    EXPECT_EQ(batch_in_words({256, 4, 8}), "256 = 4 × 8 × ranks holds for 8 data-parallel ranks only");
    EXPECT_EQ(batch_in_words({250, 4, 8}), "250 = 4 × 8 × ranks holds for no number of ranks");
    EXPECT_THAT(batch_in_words({4096, 32, {}}), HasSubstr("32 on 4"));
    EXPECT_THAT(batch_in_words({100, 32, {}}), HasSubstr("100 is no multiple of 32"));
}

}  // namespace
}  // namespace zeroplan
