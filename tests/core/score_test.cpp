#include "zeroplan/score.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/json/error_of.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;

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
    std::string second = one_case;
    second.replace(second.find(R"("id":"a")"), 8, R"("id":"b")");
    const auto cases = read_measured_cases(std::string(one_case) + "\n\n" + second + "\n", "cases.jsonl");
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

/// The case above with the value at `pointer` replaced, or taken away if it is null.
json changed_case(const std::string& pointer, const json& value) {
    json line = json::parse(one_case);
    const json::json_pointer at(pointer);
    if (value.is_null())
        line.at(at.parent_pointer()).erase(at.back());
    else
        line[at] = value;
    return line;
}

Error case_error(const json& line) {
    return error_of([&] { read_measured_cases("\n" + line.dump() + "\n", "cases.jsonl"); });
}

struct WrongCase {
    const char* pointer;
    json value;
    const char *place, *message;
};

TEST(MeasuredCases, RefuseWhatWouldBeIgnored) {
    for (const WrongCase& wrong : {
             WrongCase{"/id", nullptr, "/id", "\"id\" is missing"},
             WrongCase{"/id", "", "/id", "\"id\" is missing"},
             WrongCase{"/source", nullptr, "/source", "\"source\" is missing"},
             WrongCase{"/tierr", "A", "/tierr", "unknown key \"tierr\""},
             WrongCase{"/measured/peak_alocated_bytes", 1, "/measured/peak_alocated_bytes", "unknown key"},
             WrongCase{"/tier", nullptr, "/tier",
                       "\"peak_allocated_bytes\" is measured, and the case has no"},
             WrongCase{"/tier_time", nullptr, "/tier_time", "\"tokens_per_s_per_gpu\" is measured"},
             WrongCase{"/tier", "D", "/tier", "'D'"},
             WrongCase{"/measured", json::object(), "/measured", "nothing is measured"},
             WrongCase{"/measured/peak_allocated_bytes", 0, "/measured/peak_allocated_bytes", "above 0"},
             WrongCase{"/measured/peak_allocated_bytes", 1e-300, "/measured/peak_allocated_bytes",
                       "is 1e-300, but measurements are from 1e-12 to 1e+24"},
             WrongCase{"/measured/tokens_per_s_per_gpu", 1e300, "/measured/tokens_per_s_per_gpu", "1e+300"},
             WrongCase{"/measured/peak_allocated_bytes", -5, "/measured/peak_allocated_bytes", "-5"},
             WrongCase{"/measured/mfu", "0.5", "/measured/mfu", "0.5"},
             WrongCase{"/measured/ranks", "some", "/measured/ranks", "'some'"},
             WrongCase{"/measured/ranks", json::array(), "/measured/ranks", "empty"},
             WrongCase{"/measured/ranks", {{"0", 1}}, "/measured/ranks", "no ranks"},
             WrongCase{"/measured/by_rank", {{"0", 1}}, "/measured/by_rank_counter", "is missing"},
             WrongCase{"/measured/by_rank_counter", "peak_active_bytes", "/measured/by_rank", "is missing"},
             WrongCase{"/assumed", "engine", "/assumed", "list"},
         }) {
        const Error error = case_error(changed_case(wrong.pointer, wrong.value));
        EXPECT_EQ(error.place(), (ErrorPlace{"cases.jsonl:2", wrong.place})) << error.what();
        EXPECT_THAT(error.message(), testing::HasSubstr(wrong.message));
    }
}

TEST(MeasuredCases, RefuseAnIdThatStandsTwice) {
    const Error error =
        error_of([] { read_measured_cases(std::string(one_case) + "\n" + one_case + "\n", "cases.jsonl"); });
    EXPECT_EQ(error.place(), (ErrorPlace{"cases.jsonl:2", "/id"}));
    EXPECT_THAT(error.message(), testing::HasSubstr("\"a\" is the id of cases.jsonl:1, too"));
}

TEST(MeasuredCases, AreNotNone) {
    for (const char* text : {"", "\n \n"}) {
        EXPECT_EQ(error_of([&] { read_measured_cases(text, "c.jsonl"); }).place().file, "c.jsonl");
        EXPECT_EQ(error_of([&] { read_measured_collectives(text, "p.jsonl"); }).place().file, "p.jsonl");
    }
}

TEST(MeasuredCases, RefuseBytesOfWhatIsNoRank) {
    for (const auto& [by_rank, place] : {std::pair{R"({"first": 1})", "/measured/by_rank/first"},
                                         {R"({"-1": 1})", "/measured/by_rank/-1"},
                                         {R"({"0": 0})", "/measured/by_rank/0"},
                                         {R"({"0": null})", "/measured/by_rank/0"},
                                         {R"({})", "/measured/by_rank"},
                                         {R"([1])", "/measured/by_rank"}}) {
        json line = changed_case("/measured/by_rank", json::parse(by_rank));
        line["measured"]["by_rank_counter"] = "peak_allocated_bytes";
        EXPECT_EQ(case_error(line).place().pointer, place) << by_rank;
    }
    json line = changed_case("/measured/by_rank", {{"0", 1}});
    line["measured"]["by_rank_counter"] = "step_time_s";
    EXPECT_EQ(case_error(line).place().pointer, "/measured/by_rank_counter");
}

TEST(MeasuredCollectives, RefuseWhatWouldBeIgnored) {
    const json point = json::parse(
        R"({"id":"c","source":"s","cluster":{"topology":"dgx-h100","nodes":1},"collective":"all_reduce","bytes":1024,)"
        R"("measured":{"time_s":0.004},"tier":"A"})");
    for (const auto& [pointer, value, place] :
         {std::tuple{"/id", json(), "/id"},
          {"/source", json(), "/source"},
          {"/bytes", json(), "/bytes"},
          {"/tier", json(), "/tier"},
          {"/measured/time_s", json(), "/measured/time_s"},
          {"/measured/time_s", json(0), "/measured/time_s"},
          {"/measured/time", json(1), "/measured/time"},
          {"/algorithmm", json("ring"), "/algorithmm"},
          {"/cluster/gpus_used", json(1), "/cluster"},
          {"/measured/algbw_bytes_per_s", json(-1), "/measured/algbw_bytes_per_s"}}) {
        json line = point;
        const json::json_pointer at(pointer);
        if (value.is_null())
            line.at(at.parent_pointer()).erase(at.back());
        else
            line[at] = value;
        const Error error = error_of([&] { read_measured_collectives(line.dump(), "points.jsonl"); });
        EXPECT_EQ(error.place(), (ErrorPlace{"points.jsonl:1", place})) << error.what();
    }
    const Error twice =
        error_of([&] { read_measured_collectives(point.dump() + "\n" + point.dump(), "points.jsonl"); });
    EXPECT_EQ(twice.place(), (ErrorPlace{"points.jsonl:2", "/id"}));
}

TEST(Score, RefusesRanksThatTheScenarioDoesNotHave) {
    for (const auto& [key, value] : {std::pair{"ranks", json{0, 99}}, {"by_rank", json{{"99", 5}}}}) {
        json line = changed_case(std::string("/measured/") + key, value);
        if (std::string(key) == "by_rank") line["measured"]["by_rank_counter"] = "peak_allocated_bytes";
        const ScoreReport report = score(read_measured_cases(line.dump(), "cases.jsonl"));
        EXPECT_TRUE(report.rows.empty());
        ASSERT_EQ(report.refused.size(), 1U);
        EXPECT_THAT(report.refused[0].why,
                    testing::HasSubstr(std::string("cases.jsonl:1: /measured/") + key +
                                       ": rank 99 is measured, and the scenario has 4 ranks"));
    }
}

// Under ZeRO 0 every rank holds the same 400,896 bytes, which the case above measures, too.
TEST(Score, ComparesRankByRankOutsideTheMeans) {
    json line = changed_case("/measured/by_rank", {{"0", 400896}, {"3", 200448}});
    line["measured"]["by_rank_counter"] = "peak_allocated_bytes";
    const ScoreReport report = score(read_measured_cases(line.dump(), "cases.jsonl"));
    ASSERT_EQ(report.by_rank.size(), 2U);
    EXPECT_EQ(report.by_rank[1].rank, 3U);
    EXPECT_EQ(report.by_rank[1].row.predicted, report.by_rank[0].row.predicted);
    EXPECT_EQ(report.rows.size(), 2U);  // as without by_rank
    const json written = json::parse(score_json(report));
    EXPECT_EQ(written["by_rank"][1]["rank"], 3);
    EXPECT_NEAR(written["by_rank"][1]["error"].get<double>(),
                2 * (written["by_rank"][0]["error"].get<double>() + 1) - 1, 1e-12);
    EXPECT_EQ(written["tiers"]["A"]["by_counter"]["allocated"]["cases"], 1);
    for (const std::string& text : {score_text(report), score_markdown(report)})
        EXPECT_THAT(text, testing::HasSubstr("Rank by rank"));
}

TEST(Score, ListsATimeThatIsOnlyToldAsAShare) {
    json line = changed_case("/measured/mfu", 0.4);
    line["measured"].erase("tokens_per_s_per_gpu");
    const ScoreReport report = score(read_measured_cases(line.dump(), "cases.jsonl"));
    EXPECT_EQ(report.rows.size(), 1U);
    ASSERT_EQ(report.refused.size(), 1U);
    EXPECT_TRUE(report.refused[0].time_only);
    EXPECT_THAT(report.refused[0].why, testing::HasSubstr("only MFU or FLOP/s"));
    // Beside a time it says nothing more.
    EXPECT_TRUE(score(read_measured_cases(changed_case("/measured/mfu", 0.4).dump(), "c")).refused.empty());
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
    // Memory of this offload is planned, its time is not.
    const auto cases = read_measured_cases(
        R"({"id":"o","source":"s","scenario":{"model":{"preset":"gpt2"},"training":{"engine":"deepspeed",)"
        R"("zero_stage":0,"offload_optimizer":"cpu"}},)"
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

TEST(MeasuredCollectives, RefuseABandwidthThatItsTimeContradicts) {
    // 1 GiB in 4 ms: algbw 268.4e9, and an all-reduce over 8 GPUs has 2 · 7 / 8 of it, 469.8e9.
    const json point = json::parse(
        R"({"id":"c","source":"s","cluster":{"topology":"dgx-h100","nodes":1},"collective":"all_reduce",)"
        R"("bytes":1073741824,"measured":{"time_s":0.004},"tier":"A"})");
    const auto with = [&](const char* key, double value, std::uint64_t bytes = 1ULL << 30) {
        json line = point;
        line["measured"][key] = value;
        line["bytes"] = bytes;
        return line.dump();
    };
    EXPECT_NO_THROW(read_measured_collectives(with("busbw_bytes_per_s", 469.76e9), "p.jsonl"));
    EXPECT_NO_THROW(read_measured_collectives(with("algbw_bytes_per_s", 268e9), "p.jsonl"));
    // Of 1 KiB nothing but a digit is printed: 1024 B / 4 ms is 256 kB/s, "0.00".
    EXPECT_NO_THROW(read_measured_collectives(with("algbw_bytes_per_s", 0.004e9, 1024), "p.jsonl"));
    for (const auto& [key, value] :
         {std::pair{"busbw_bytes_per_s", 268.4e9}, {"algbw_bytes_per_s", 469.8e9}}) {
        const Error error = error_of([&] { read_measured_collectives(with(key, value), "points.jsonl"); });
        EXPECT_EQ(error.place(), (ErrorPlace{"points.jsonl:1", std::string("/measured/") + key}));
    }
    const Error error =
        error_of([&] { read_measured_collectives(with("busbw_bytes_per_s", 268.4e9), "p.jsonl"); });
    EXPECT_THAT(error.message(), testing::HasSubstr("busbw_bytes_per_s is 2.684e+11, but 1073741824 bytes in "
                                                    "time_s 0.004 on 8 ranks are 4.698e+11 bytes/s"));
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
