#include "zeroplan/compare.hpp"

#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/json/error_of.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
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

TEST(Compare, TakesRoundingOfTimesForNoDifference) {
    const Figure step{"time", "step time", "s", 2.0};
    const auto with = [&](double communicating_s) {
        return report({}, {step, {"time", "communicating", "s", communicating_s}});
    };
    EXPECT_TRUE(compare(with(0.1), with(0.1 * (1 - 2.2e-16)), 0).agrees);
    EXPECT_EQ(compare(with(0), with(3.3e-16), 0).figures[1].relative, 0.0);
    EXPECT_TRUE(compare(with(0.1), with(0.1 + 1.9e-9), 0).agrees);
    EXPECT_FALSE(compare(with(0.1), with(0.1 + 2.1e-9), 0).agrees);
    // A byte of 100 GB is one.
    EXPECT_FALSE(
        compare(report({}, {allocated(100'000'000'000)}), report({}, {allocated(100'000'000'001)}), 0)
            .agrees);
}

TEST(Compare, NeverAgreesOnSomethingThatWasNothing) {
    const auto zero = report({}, {allocated(0)}), one = report({}, {allocated(1)});
    EXPECT_EQ(compare(zero, one, 1e9).figures[0].relative, std::nullopt);
    EXPECT_FALSE(compare(zero, one, 1e9).agrees);
    EXPECT_TRUE(compare(zero, zero, 0).agrees);
}

TEST(Compare, HasNoShareOfWhatWasAlmostNothing) {
    const Figure least{"time", "step time", "s", 1e-300}, usual{"time", "step time", "s", 1e10};
    const ComparableReport a = report({}, {least}), b = report({}, {usual});
    const Comparison comparison = compare(a, b, 1e9);
    EXPECT_EQ(comparison.figures[0].relative, std::nullopt);
    EXPECT_FALSE(comparison.agrees);
    const std::string text = compare_text(a, b, comparison);
    EXPECT_THAT(text, HasSubstr("was almost 0"));
    EXPECT_THAT(text, testing::Not(HasSubstr("inf")));
}

TEST(Compare, TellsWhatOnlyOneHas) {
    const Figure time{"time", "step time", "s", 2.0};
    const auto a = report({}, {allocated(1), time});
    const auto b = report({}, {allocated(1)});
    for (const auto& [x, y, in_a] : {std::tuple{a, b, true}, {b, a, false}}) {
        const Comparison comparison = compare(x, y, 1e9);
        EXPECT_EQ(comparison.figures.size(), 1U);
        EXPECT_EQ(comparison.only_in_one, (std::vector<OneSidedFigure>{{"", time, in_a}}));
        EXPECT_FALSE(comparison.agrees);
        EXPECT_THAT(
            compare_text(x, y, comparison),
            testing::AllOf(testing::StartsWith("disagree: 0 of 1 figures differ by more than 1e+11 %, 1 is "
                                               "in one report only\n"),
                           HasSubstr("time: step time")));
    }
    EXPECT_THROW(compare(a, report({}), 0), Error);
}

TEST(Compare, ForgivesWhatAReportOfThatKindNeverHas) {
    auto plan = report({{{{0, 0}}, {allocated(1), {"memory", "reserved", "B", 3}}}});
    auto run = report({{{{0, 0}}, {allocated(1)}}}, {{"time", "step time", "s", 2.0}});
    run.kind = "run";
    const Comparison comparison = compare(plan, run, 0);
    EXPECT_TRUE(comparison.agrees);
    ASSERT_EQ(comparison.not_comparable.size(), 2U);
    EXPECT_THAT(compare_text(plan, run, comparison),
                testing::AllOf(HasSubstr("a run has no reserved"), HasSubstr("a plan has no time")));
    // What it may have and hasn't is another matter.
    plan.ranks[0].figures.push_back({"memory", "between steps", "B", 1});
    EXPECT_FALSE(compare(plan, run, 0).agrees);
}

TEST(Compare, TellsTheRanksThatOnlyOneHas) {
    const auto eight = report({{{{0, 7}}, {allocated(100)}}});
    const auto four = report({{{{0, 1}, {4, 5}}, {allocated(100)}}});
    const Comparison comparison = compare(eight, four, 1e9);
    EXPECT_EQ(comparison.only_in_one, (std::vector<OneSidedFigure>{{"2-3,6-7", allocated(100), true}}));
    EXPECT_FALSE(comparison.agrees);
    EXPECT_EQ(compare(four, eight, 0).only_in_one,
              (std::vector<OneSidedFigure>{{"2-3,6-7", allocated(100), false}}));
}

TEST(Compare, ComparesTheVerdicts) {
    auto a = report({}, {allocated(1)}), b = a;
    a.verdict = "fits";
    EXPECT_EQ(compare(a, b, 0).same_verdict, std::nullopt);
    b.verdict = "does_not_fit";
    EXPECT_FALSE(compare(a, b, 1e9).agrees);
    EXPECT_THAT(compare_text(a, b, compare(a, b, 0)), HasSubstr("and so does the verdict"));
    b.verdict = "fits";
    EXPECT_TRUE(compare(a, b, 0).agrees);
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

/// Reports as zeroplan writes them, to be tampered with.
class TamperedReport : public testing::Test {
protected:
    static Plan plan() {
        return make_plan(resolve_scenario(
            {"",
             R"({"model": {"preset": "tutorial-mlp"}, "cluster": {"topology": "host", "gpus_used": 2}})",
             {}}));
    }
    static json plan_report() { return json::parse(plan_json(plan())); }
    static json sim_report() {
        json sim = plan_report();
        sim["kind"] = "sim";
        for (const char* key : {"step_time_s", "tokens_per_s_per_gpu", "mfu", "compute_s", "communication_s",
                                "exposed_communication_s", "bubble_s", "low_s", "high_s", "wall_s"})
            sim[key] = 1.5;
        sim["fidelity"] = "coupled flows";
        return sim;
    }
    static json run_report() {
        const Plan planned = plan();
        const RankGroup& group = planned.rank_groups[0];
        RunReport run{.backend = "host", .world_size = 2, .losses = {1, 2}, .step_times_s = {1, 1}};
        for (std::uint64_t rank = 0; rank < 2; ++rank)
            run.ranks.push_back(
                {rank, group.steady.allocated, group.steady.at_peak, group.resident, {}, {}, {}});
        return json::parse(run_json(planned, run));
    }
    static Error refusal(const json& report) {
        return error_of([&] { parse_report(report.dump(), "r.json"); });
    }
    /// Every key of `object`, which stands at `pointer` of `report`, is missed; but for those in `optional`.
    static void expect_every_key_is_missed(const json& report, const std::string& pointer,
                                           const std::set<std::string>& optional = {}) {
        for (const auto& item : report.at(json::json_pointer(pointer)).items()) {
            json gutted = report;
            gutted.at(json::json_pointer(pointer)).erase(item.key());
            if (optional.contains(item.key()))
                EXPECT_NO_THROW(parse_report(gutted.dump(), "r.json")) << pointer << "/" << item.key();
            else
                EXPECT_EQ(refusal(gutted).place(), (ErrorPlace{"r.json", pointer + "/" + item.key()}));
        }
    }
};

TEST_F(TamperedReport, MissesEveryKeyThatAPlanPromises) {
    const json plan = plan_report();
    expect_every_key_is_missed(plan, "", {"constants"});
    expect_every_key_is_missed(plan, "/model", {"name", "architecture"});
    expect_every_key_is_missed(plan, "/memory");
    expect_every_key_is_missed(plan, "/memory/rank_groups/0", {"intervals"});
    expect_every_key_is_missed(plan, "/memory/rank_groups/0/intervals/peak_reserved_bytes");
    expect_every_key_is_missed(plan, "/memory/rank_groups/0/at_peak");
    expect_every_key_is_missed(plan, "/memory/phases/4", {"peak_reserved_bytes"});
    expect_every_key_is_missed(plan, "/memory/host");
    expect_every_key_is_missed(plan, "/communication");
    expect_every_key_is_missed(plan, "/communication/by_kind/all_reduce", {"buffer_bytes"});
}

TEST_F(TamperedReport, MissesEveryKeyThatASimulationOrARunPromises) {
    expect_every_key_is_missed(sim_report(), "", {"constants"});
    expect_every_key_is_missed(run_report(), "", {"schema", "wall_s"});
    expect_every_key_is_missed(run_report(), "/ranks/1",
                               {"resident_bytes", "process_peak_planned_bytes", "device_peak_bytes"});
    expect_every_key_is_missed(run_report(), "/ranks/0/at_peak");
    expect_every_key_is_missed(run_report(), "/plan/memory");
}

TEST_F(TamperedReport, MustDescribeEveryRankOnce) {
    const auto with_ranks = [](const std::vector<std::string>& groups) {
        json report = plan_report();
        report["world_size"] = 4;
        const json group = report["memory"]["rank_groups"][0];
        report["memory"]["rank_groups"] = json::array();
        for (const std::string& ranks : groups) {
            report["memory"]["rank_groups"].push_back(group);
            report["memory"]["rank_groups"].back()["ranks"] = ranks;
        }
        return report;
    };
    EXPECT_NO_THROW(parse_report(with_ranks({"2", "0-1,3"}).dump(), "r.json"));
    for (const auto& [groups, pointer, message] :
         {std::tuple{std::vector<std::string>{}, "/memory/rank_groups", "rank 0 is missing here"},
          {{"0-1", "3"}, "/memory/rank_groups", "rank 2 is missing here, and the world has 4 ranks"},
          {{"0-2"}, "/memory/rank_groups", "rank 3 is missing here"},
          {{"0-3", "2"}, "/memory/rank_groups", "rank 2 stands here twice"},
          {{"0-4"}, "/memory/rank_groups", "rank 4 stands here, and the world has 4 ranks"},
          {{"0-18446744073709551615"}, "/memory/rank_groups", "rank 18446744073709551615 stands here"},
          {{"0-1", "3-2"}, "/memory/rank_groups/1/ranks", "begins at rank 3 and ends at rank 2"},
          {{"0-"}, "/memory/rank_groups/0/ranks", "\"\" is no rank"},
          {{"-1"}, "/memory/rank_groups/0/ranks", "\"\" is no rank"}}) {
        const Error error = refusal(with_ranks(groups));
        EXPECT_EQ(error.place(), (ErrorPlace{"r.json", pointer})) << message;
        EXPECT_THAT(error.message(), HasSubstr(message));
        EXPECT_NE(error.hint(), "");
    }
    json run = run_report();
    run["ranks"][1]["rank"] = 0;
    EXPECT_EQ(refusal(run).place().pointer, "/ranks");
    run["ranks"][1]["rank"] = 1;
    run["world_size"] = 3;
    EXPECT_THAT(refusal(run).message(), HasSubstr("rank 2 is missing here"));
    run = run_report();
    run["plan"]["memory"]["rank_groups"][0]["ranks"] = "0-3";
    run["plan"]["world_size"] = 4;
    EXPECT_THAT(refusal(run).message(), HasSubstr("2 ranks ran, but the plan is for 4"));
}

TEST_F(TamperedReport, IsRefusedWithThePlaceOfAWrongValue) {
    const auto refused = [](json report, const std::string& pointer, const json& value) {
        report.at(json::json_pointer(pointer)) = value;
        const Error error = refusal(report);
        EXPECT_EQ(error.place(), (ErrorPlace{"r.json", pointer})) << value;
        EXPECT_THAT(error.message(), HasSubstr(value.is_string() ? value.get<std::string>() : value.dump()));
    };
    for (const char* pointer :
         {"/memory/peak_allocated_bytes", "/memory/low_bytes", "/memory/rank_groups/0/peak_active_bytes",
          "/memory/rank_groups/0/runtime_bytes", "/memory/rank_groups/0/at_peak/logits",
          "/memory/phases/2/peak_allocated_bytes", "/memory/host/capacity_bytes",
          "/communication/by_kind/all_reduce/bytes_per_rank", "/communication/operations"}) {
        refused(plan_report(), pointer, -512);
        refused(plan_report(), pointer, "512");
    }
    refused(plan_report(), "/memory/verdict", "maybe");
    refused(plan_report(), "/memory/phases/0/phase", "lunch");
    refused(plan_report(), "/memory/peak_rank", 2);
    refused(plan_report(), "/schema", 2);
    refused(run_report(), "/plan/schema", 2);
    refused(run_report(), "/ranks/0/process_peak_bytes", -1);
    refused(sim_report(), "/step_time_s", -1);
    json run = run_report();
    run["losses"].erase(1);
    EXPECT_THAT(refusal(run).message(), HasSubstr("2 steps have a time, and 1 have a loss"));
}

// Whatever number is changed in one of two equal reports, they no longer agree.
TEST_F(TamperedReport, DiffersInEveryNumberThatIsPromised) {
    const json plan = plan_report();
    const ComparableReport original = parse_report(plan.dump(), "a.json");
    for (const char* part : {"/memory", "/communication", "/model"}) {
        const json flat = plan.at(json::json_pointer(part)).flatten();
        for (const auto& item : flat.items()) {
            if (!item.value().is_number() || item.key().ends_with("/peak_rank")) continue;
            json changed = plan;
            json& value = changed.at(json::json_pointer(part + item.key()));
            value = value.get<std::uint64_t>() + 1;
            const bool is_promised = !item.key().ends_with("/buffer_bytes") || item.key() == "/buffer_bytes";
            if (item.key().starts_with("/phases") && item.key().ends_with("reserved_bytes")) continue;
            if (!is_promised) continue;
            EXPECT_FALSE(compare(original, parse_report(changed.dump(), "b.json"), 0).agrees)
                << part << item.key();
        }
    }
}

TEST_F(TamperedReport, ShowsACollectiveThatOnlyOnePlanHas) {
    const json plan = plan_report();
    json other = plan;
    other["communication"]["by_kind"]["broadcast"] = {{"operations", 1}, {"bytes_per_rank", 8}};
    const ComparableReport a = parse_report(plan.dump(), "a.json"), b = parse_report(other.dump(), "b.json");
    const json comparison = json::parse(compare_json(a, b, compare(a, b, 0)));
    ASSERT_EQ(comparison["only_in_one"].size(), 2U);
    EXPECT_EQ(comparison["only_in_one"][0]["what"], "broadcast: operations");
    EXPECT_EQ(comparison["only_in_one"][0]["a"], nullptr);
    EXPECT_EQ(comparison["only_in_one"][0]["b"], 1);
    EXPECT_EQ(comparison["agrees"], false);
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
