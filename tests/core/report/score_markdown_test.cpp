#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeroplan/score.hpp"

namespace zeroplan {
namespace {

using testing::HasSubstr;
using testing::Not;

ScoreReport two_sources() {
    ScoreReport report;
    report.rows = {{.id = "1", .source = "many", .predicted = 110, .measured = 100, .interval = {{101, 120}}},
                   {.id = "2", .source = "many", .predicted = 96, .measured = 100, .interval = {{90, 100}}},
                   {.id = "3", .source = "few", .predicted = 101, .measured = 100}};
    return report;
}

TEST(ScoreMarkdown, MeansOverSourcesThenEachSource) {
    const std::string text = score_markdown(two_sources());
    EXPECT_THAT(text, HasSubstr("| A | allocated | 3 | 2 | 4.0 % | 5.5 % | +2.0 % | 1 of 2 |\n"));
    EXPECT_THAT(text, HasSubstr("| many | A | allocated | 2 | 7.0 % | 10.0 % | +3.0 % | 1 of 2 |\n"));
    EXPECT_THAT(text, HasSubstr("| few | A | allocated | 1 | 1.0 % | 1.0 % | +1.0 % | - |\n"));
    EXPECT_THAT(text, Not(HasSubstr("## Refused")));
    EXPECT_THAT(text, Not(HasSubstr("## Does it fit")));
}

TEST(ScoreMarkdown, TellsSmallCollectivesFromLarge) {
    ScoreReport report = two_sources();
    EXPECT_THAT(score_markdown(report), Not(HasSubstr("## By size")));
    EXPECT_THAT(score_json(report), Not(HasSubstr("by_size")));
    const std::uint64_t sizes[]{(1U << 20) - 1, 1U << 20, 1U << 30};
    for (std::size_t i = 0; i < report.rows.size(); ++i) {
        report.rows[i].counter = Counter::time;
        report.rows[i].bytes = Bytes{sizes[i]};
    }
    const std::string text = score_markdown(report);
    EXPECT_THAT(text, HasSubstr("| below 1 MiB | A | time | 1 | 1 | 10.0 % | 10.0 % | +10.0 % | 0 of 1 |\n"));
    EXPECT_THAT(text, HasSubstr("| 1 MiB and more | A | time | 2 | 2 | 2.5 % | 2.5 % | -1.5 % | 1 of 1 |\n"));
    EXPECT_THAT(score_text(report), HasSubstr("below 1 MiB"));
    EXPECT_THAT(score_json(report), HasSubstr("\"size\": \"1 MiB and more\""));
}

TEST(ScoreMarkdown, KeepsNamesOfSourcesInTheirCell) {
    ScoreReport report = two_sources();
    report.rows[0].source = "a|b\n## x";
    EXPECT_THAT(score_markdown(report), HasSubstr("| a\\|b\\n## x | A | allocated | 1 |"));
}

TEST(ScoreMarkdown, CountsVerdictsAndRefusalsByReason) {
    ScoreReport report = two_sources();
    report.fits = {{.ran = true, .verdict = Verdict::fits}, {.ran = true, .verdict = Verdict::does_not_fit}};
    report.refused = {{.id = "4", .why = "no\nhint"}, {.id = "5", .why = "no"}};
    report.refused.push_back({.id = "6", .why = "no", .time_only = true});
    const std::string text = score_markdown(report);
    EXPECT_THAT(text, HasSubstr("| A | ran | 1 | 1 | 0 |\n"));
    EXPECT_THAT(text, HasSubstr("| 2 | case | no |\n"));
    EXPECT_THAT(text, HasSubstr("| 1 | time | no |\n"));
}

}  // namespace
}  // namespace zeroplan
