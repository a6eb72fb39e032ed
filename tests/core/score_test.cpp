#include "zeroplan/score.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zeroplan {
namespace {

ScoreRow row(std::string source, double predicted, double measured) {
    return {.id = "x", .source = std::move(source), .predicted = predicted, .measured = measured};
}

TEST(ErrorSummary, IsMedianNearestRankPercentileAndSignedMean) {
    std::vector<ScoreRow> rows;
    for (int percent = 1; percent <= 10; ++percent)
        rows.push_back(row("s", 100 + (percent % 2 == 0 ? percent : -percent), 100));
    const ErrorSummary summary = summarise(rows);
    EXPECT_EQ(summary.cases, 10U);
    EXPECT_NEAR(summary.median_abs_error, 0.055, 1e-12);
    EXPECT_NEAR(summary.p90_abs_error, 0.09, 1e-12);
    EXPECT_NEAR(summary.mean_error, 0.005, 1e-12);
    EXPECT_NEAR(summarise(std::span(rows).first(1)).p90_abs_error, 0.01, 1e-12);
}

TEST(ErrorSummary, WeighsSourcesAlike) {
    std::vector<ScoreRow> rows(200, row("many", 110, 100));
    rows.push_back(row("few", 130, 100));
    const ErrorSummary mean = mean_over_sources(rows);
    EXPECT_EQ(mean.cases, 201U);
    EXPECT_EQ(mean.sources, 2U);
    EXPECT_NEAR(mean.median_abs_error, 0.2, 1e-12);
}

TEST(FitsRow, MarginalIsRightEitherWay) {
    EXPECT_TRUE((FitsRow{.ran = true, .verdict = Verdict::marginal}.right()));
    EXPECT_TRUE((FitsRow{.ran = false, .verdict = Verdict::marginal}.right()));
    EXPECT_FALSE((FitsRow{.ran = false, .verdict = Verdict::fits}.right()));
    EXPECT_TRUE((FitsRow{.ran = false, .verdict = Verdict::does_not_fit}.right()));
}

constexpr const char* one_case =
    R"({"id":"a","source":"s","scenario":{"schema":1,"model":{"preset":"tutorial-mlp"},"cluster":{"topology":"host","gpus_used":4}},)"
    R"("measured":{"peak_allocated_bytes":400896,"tokens_per_s_per_gpu":1000,"ranks":"first","fits":true},"tier":"A","tier_time":"B"})";

TEST(MeasuredCases, AreReadLineByLine) {
    const auto cases = read_measured_cases(std::string(one_case) + "\n\n" + one_case + "\n", "cases.jsonl");
    ASSERT_EQ(cases.size(), 2U);
    EXPECT_EQ(cases[0].ranks, std::vector<std::uint64_t>{0});
    EXPECT_EQ(cases[0].tier, Tier::a);
    EXPECT_EQ(cases[0].tier_time, Tier::b);
    EXPECT_EQ(cases[0].fits, true);
}

TEST(MeasuredCases, NameFileAndLineOfAMistake) {
    try {
        read_measured_cases(std::string(one_case) + "\n{\"id\": \"b\"}\n", "cases.jsonl");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.place().file, "cases.jsonl:2");
        EXPECT_EQ(error.place().pointer, "/scenario");
    }
    EXPECT_THROW(read_measured_cases("{\"id\": ", "cases.jsonl"), Error);
}

TEST(Score, ComparesLikeWithLikeAndListsRefusals) {
    auto cases = read_measured_cases(one_case, "cases.jsonl");
    cases.push_back(cases[0]);
    cases[1].scenario_json =
        R"({"schema":1,"model":{"preset":"tutorial-mlp"},"training":{"engine":"no such"}})";
    const ScoreReport report = score(cases);
    ASSERT_EQ(report.rows.size(), 2U);  // allocated, and time from the rate
    EXPECT_EQ(report.rows[0].counter, Counter::allocated);
    EXPECT_EQ(report.rows[1].counter, Counter::time);
    EXPECT_NEAR(report.rows[1].measured, 32.0 / 1000, 1e-12);
    ASSERT_EQ(report.refused.size(), 1U);
    EXPECT_THAT(report.refused[0].why, testing::HasSubstr("no such"));
    EXPECT_THAT(score_json(report), testing::HasSubstr("\"kind\": \"score\""));
    EXPECT_THAT(score_text(report), testing::HasSubstr("1 cases refused"));
}

TEST(Score, TellsARefusedTimeFromARefusedCase) {
    // Memory under offload is planned, its time is not.
    const auto cases = read_measured_cases(
        R"({"id":"o","source":"s","scenario":{"model":{"preset":"gpt2"},"training":{"engine":"fsdp2",)"
        R"("offload_parameters":"cpu","offload_optimizer":"cpu"}},)"
        R"("measured":{"peak_reserved_bytes":4000000000,"step_time_s":1},"tier":"A","tier_time":"A"})",
        "cases.jsonl");
    const ScoreReport report = score(cases);
    ASSERT_EQ(report.rows.size(), 1U);
    EXPECT_EQ(report.rows[0].counter, Counter::reserved);
    ASSERT_EQ(report.refused.size(), 1U);
    EXPECT_TRUE(report.refused[0].time_only);
    EXPECT_THAT(score_text(report),
                testing::HasSubstr("1 figures compared, 0 cases refused, and the time of 1 more"));
    EXPECT_THAT(score_json(report), testing::HasSubstr("\"refused\": \"time\""));
}

TEST(Score, PredictsACollectivesTime) {
    const auto points = read_measured_collectives(
        R"({"id":"c","source":"s","cluster":{"topology":"dgx-h100","nodes":1},"collective":"all_reduce","bytes":1073741824,)"
        R"("measured":{"time_s":0.004},"tier":"A"})",
        "points.jsonl");
    const ScoreReport report = score(points);
    ASSERT_EQ(report.rows.size(), 1U);
    EXPECT_EQ(report.rows[0].bytes, Bytes{1073741824});
    EXPECT_GT(report.rows[0].predicted, 0);
}

}  // namespace
}  // namespace zeroplan
