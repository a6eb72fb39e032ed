#include "zeroplan/plan_views.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/text_page.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Plan plan_of(const char* stage) {
    return make_plan(resolve_scenario(
        {"", R"({"model": {"preset": "gpt2"}})", {text_setting("/training/zero_stage", stage, "--zero")}}));
}

PlanViews all_views(const Plan& plan) {
    return {explain(plan), compare_stages(plan, {1, 8, 64}), against_deepspeed_estimator(plan)};
}

TEST(PlanViewsText, ShowsEveryViewBelowTheVerdict) {
    const Plan plan = plan_of("3");
    const std::string text = plan_views_text(plan, all_views(plan));
    EXPECT_THAT(text, testing::StartsWith("fits: "));
    for (const char* part :
         {"What shrinks with the number of ranks", "8 ranks  16 ranks",
          "not divided: whole layers while they", "shrink as ranks are added",
          "Live at the peak, largest first", "transformer.h.0-11",
          "Peak device memory by ZeRO stage and GPUs", "64 GPUs", "capacity",
          "ZeRO 3 takes more than ZeRO 0 ", "gathered parameters +", "P = 124,439,808 parameters",
          "\n          0 1 2 3: ZeRO stage\n", "4L + 18P/N", "→ ZeRO 3", "left out: context"})
        EXPECT_THAT(text, HasSubstr(part));
}

TEST(PlanViewsText, StaysWithinAHundredColumns) {
    const Plan plan = plan_of("2");
    const std::string text = plan_views_text(plan, all_views(plan));
    for (std::size_t begin = text.find('\n') + 1; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        const std::string line = text.substr(begin, end - begin);
        EXPECT_LE(display_width(line), 100U) << line;
        EXPECT_FALSE(line.ends_with(' ')) << line;
        begin = end + 1;
    }
}

TEST(PlanViewsJson, PutsTheViewsBesideThePlansKeys) {
    const Plan plan = plan_of("3");
    EXPECT_EQ(plan_views_json(plan, {}), plan_json(plan));
    const json out = json::parse(plan_views_json(plan, all_views(plan)));
    EXPECT_EQ(out["kind"], "plan");
    std::uint64_t sum = 0;
    for (const json& row : out["explain"]["ingredients"]) sum += row["bytes"].get<std::uint64_t>();
    EXPECT_EQ(sum, out["memory"]["overall_peak_device_bytes"]);
    EXPECT_EQ(out["explain"]["live"][0]["dtype"].is_string(), true);
    EXPECT_EQ(out["compare_stages"]["points"].size(), 12U);
    EXPECT_EQ(out["compare_stages"]["gpus"], json({1, 8, 64}));
    EXPECT_EQ(out["against"]["rows"].size(), 10U);
    EXPECT_EQ(out["against"]["matching_row"], 8);
    EXPECT_EQ(out["against"]["total_params"], 124439808);
}

}  // namespace
}  // namespace zeroplan
