#include "zeroplan/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json/error_of.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using testing::HasSubstr;

ComparableReport report(std::vector<RankFigures> ranks, std::vector<Figure> figures = {}) {
    ComparableReport result{.file = "x.json", .kind = "plan", .summary = "s"};
    result.ranks = std::move(ranks);
    result.figures = std::move(figures);
    return result;
}
Figure allocated(double bytes) {
    return {"memory", "allocated", "B", bytes};
}

TEST(Compare, MatchesRanksWhereverTheGroupsAreCut) {
    const auto a = report({{{{0, 3}}, {allocated(100)}}, {{{4, 7}}, {allocated(200)}}});
    const auto b = report({{{{0, 1}, {6, 7}}, {allocated(100)}}, {{{2, 5}}, {allocated(200)}}});
    const Comparison comparison = compare(a, b, 0);
    ASSERT_EQ(comparison.figures.size(), 4U);
    EXPECT_EQ(comparison.figures[0].ranks, "0-1");
    EXPECT_EQ(comparison.figures[0].relative, 0.0);
    EXPECT_EQ(comparison.figures[1].ranks, "2-3");
    EXPECT_EQ(comparison.figures[1].relative, 1.0);
    EXPECT_EQ(comparison.figures[2].ranks, "6-7");
    EXPECT_EQ(comparison.figures[2].relative, -0.5);
    EXPECT_EQ(comparison.figures[3].ranks, "4-5");
    EXPECT_FALSE(comparison.agrees);
}

TEST(Compare, TakesTheToleranceAsRelative) {
    const auto a = report({}, {{"time", "step time", "s", 2.0}});
    const auto b = report({}, {{"time", "step time", "s", 2.1}});
    EXPECT_FALSE(compare(a, b, 0).agrees);
    EXPECT_FALSE(compare(a, b, 0.049).agrees);
    EXPECT_TRUE(compare(a, b, 0.051).agrees);
}

TEST(Compare, NeverAgreesOnSomethingThatWasNothing) {
    const auto zero = report({}, {allocated(0)}), one = report({}, {allocated(1)});
    EXPECT_EQ(compare(zero, one, 1e9).figures[0].relative, std::nullopt);
    EXPECT_FALSE(compare(zero, one, 1e9).agrees);
    EXPECT_TRUE(compare(zero, zero, 0).agrees);
}

TEST(Compare, SkipsWhatOnlyOneHas) {
    const auto a = report({}, {allocated(1), {"time", "step time", "s", 2.0}});
    const auto b = report({}, {allocated(1)});
    EXPECT_EQ(compare(a, b, 0).figures.size(), 1U);
    EXPECT_THROW(compare(a, report({}), 0), Error);
}

TEST(Compare, AsksForEqualParametersOnlyWithoutTolerance) {
    auto a = report({}, {allocated(1)}), b = a;
    EXPECT_EQ(compare(a, b, 0).same_parameters, std::nullopt);
    a.final_parameters_sha256 = "1";
    b.final_parameters_sha256 = "2";
    EXPECT_EQ(compare(a, b, 0).same_parameters, false);
    EXPECT_FALSE(compare(a, b, 0).agrees);
    EXPECT_TRUE(compare(a, b, 0.1).agrees);
}

TEST(Compare, ListsTheKeysThatDiffer) {
    auto a = report({}, {allocated(1)}), b = a;
    a.scenario = {{"/a", "1"}, {"/b", "2"}, {"/d", "4"}};
    b.scenario = {{"/b", "3"}, {"/c", "5"}, {"/d", "4"}};
    using Key = Comparison::Key;
    EXPECT_EQ(compare(a, b, 0).scenario,
              (std::vector<Key>{{"/a", "1", ""}, {"/b", "2", "3"}, {"/c", "", "5"}}));
}

TEST(ParseReport, ReadsWhatAPlanWrites) {
    const Plan plan = make_plan(resolve_scenario({"", R"({"model": {"preset": "gpt2"}})", {}}));
    const ComparableReport read = parse_report(plan_json(plan), "p.json");
    EXPECT_EQ(read.kind, "plan");
    EXPECT_EQ(read.summary, "gpt2, engine native, ZeRO 0, 8 ranks");
    ASSERT_EQ(read.ranks.size(), 1U);
    EXPECT_EQ(read.ranks[0].ranks, (std::vector<RankRange>{{0, 7}}));
    EXPECT_THAT(
        read.ranks[0].figures,
        testing::Contains(allocated(static_cast<double>(plan.rank_groups[0].steady.allocated.count()))));
    EXPECT_TRUE(compare(read, read, 0).agrees);
}

TEST(ParseReport, ComparesAPlanWithARunRankByRank) {
    const Plan plan = make_plan(resolve_scenario(
        {"",
         R"({"model": {"preset": "tutorial-mlp"}, "cluster": {"topology": "host", "gpus_used": 2}})",
         {}}));
    RunReport run{.backend = "host", .world_size = 2, .losses = {1}, .step_times_s = {1}};
    const RankGroup& group = plan.rank_groups[0];
    for (std::uint64_t rank = 0; rank < 2; ++rank)
        run.ranks.push_back({rank, group.steady.allocated, group.steady.at_peak, group.resident, {}, {}, {}});
    const ComparableReport planned = parse_report(plan_json(plan), "p.json");
    EXPECT_TRUE(compare(planned, parse_report(run_json(plan, run), "r.json"), 0).agrees);
    run.ranks[1].at_peak[Category::gradients] += Bytes{512};
    const Comparison comparison = compare(planned, parse_report(run_json(plan, run), "r.json"), 0);
    EXPECT_FALSE(comparison.agrees);
    for (const ComparedFigure& figure : comparison.figures)
        EXPECT_EQ(figure.within, figure.ranks != "1" || figure.a.what != "gradients") << figure.a.what;
}

TEST(ParseReport, PlacesWhatIsMissing) {
    const auto error = [](const char* text) { return error_of([&] { parse_report(text, "r.json"); }); };
    EXPECT_EQ(error("{}").place(), (ErrorPlace{"r.json", "/kind"}));
    EXPECT_EQ(error(R"({"kind": "run", "schema": 2})").place().pointer, "/schema");
    EXPECT_EQ(error(R"({"kind": "run"})").place().pointer, "/plan");
    EXPECT_EQ(error(R"({"kind": "plan", "scenario": {"training": {}}, "memory": {"rank_groups": 3}})")
                  .place()
                  .pointer,
              "/memory/rank_groups");
    EXPECT_THAT(error("{\"kind\": \"plan\"").message(), HasSubstr("too early"));
}

TEST(CompareText, SaysHowManyFiguresDiffer) {
    const auto a = report({{{{0, 1}}, {allocated(1024), {"memory", "device", "B", 4096}}}});
    const auto b = report({{{{0, 1}}, {allocated(2048), {"memory", "device", "B", 4096}}}});
    const std::string text = compare_text(a, b, compare(a, b, 0));
    EXPECT_THAT(text, testing::StartsWith("disagree: 1 of 2 figures differ\n"));
    EXPECT_THAT(text, HasSubstr("memory, ranks 0-1"));
    EXPECT_THAT(text, HasSubstr("+100.00 %"));
    EXPECT_THAT(text, testing::Not(HasSubstr("device")));
    EXPECT_THAT(compare_text(a, a, compare(a, a, 0)),
                testing::StartsWith("agree: all 2 figures are equal\n"));
}

}  // namespace
}  // namespace zeroplan
