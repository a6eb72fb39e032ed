#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/text_page.hpp"
#include "zeroplan/io.hpp"
#include "zeroplan/what_if_report.hpp"

namespace zeroplan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Plan plan_of_two() {
    ScenarioRequest request;
    request.text = R"({"model": {"preset": "tutorial-mlp"}, "training": {"zero_stage": 2},
                       "cluster": {"topology": "host", "gpus_used": 2}})";
    return make_plan(resolve_scenario(request));
}

SimReport slow_step() {
    SimReport report;
    StepTimeline step;
    step.step_time_s = 2.5;
    step.compute_s = 1.5;
    step.exposed_communication_s = 0.6;
    step.bubble_s = 0.4;
    report.rank_groups = {step};
    report.closed_form = step;
    return report;
}

SimExtras slow_extras() {
    SimExtras extras;
    extras.what_if.emplace();
    extras.what_if->asked.stragglers = {{1, 0.8}};
    extras.what_if->step_time_without_s = 2;
    extras.what_if->causes = {{"rank 1 computes at 0.8 of its speed", 2.5, 0.5, 0.2, 0.1}};
    extras.what_if->waited_for = WaitedFor{{{1, 1}}, 7, 8, 0.25};
    return extras;
}

Goodput some_goodput() {
    Goodput run;
    run.mtbf_s = 6 * 3600;
    run.checkpoint_bytes = 9e12;
    run.checkpoint_s = 180;
    run.restart_s = 300;
    run.interval_s = 1800;
    run.interval_is_given = true;
    run.goodput = 0.8;
    run.best_interval_s = 2700;
    run.best_goodput = 0.85;
    run.young_interval_s = 2790;
    run.young_goodput = 0.84;
    run.daly_interval_s = 2701;
    run.daly_goodput = 0.85;
    return run;
}

TEST(WhatIfText, TellsCausesAndWhoIsWaitedFor) {
    const std::string text = sim_text(plan_of_two(), slow_step(), slow_extras());
    for (const char* part :
         {"What if", "without", "2.000 s", "rank 1 computes at 0.8 of its speed", "2.500 s", "+500 ms",
          "+300 ms", "everybody waits for rank 1", "7 of its 8 collectives", "250 ms"})
        EXPECT_THAT(text, HasSubstr(part));
    EXPECT_THAT(sim_text(plan_of_two(), slow_step()), testing::Not(HasSubstr("What if")));
}

TEST(WhatIfText, TellsTheGoodputOfEveryInterval) {
    SimExtras extras = slow_extras();
    extras.goodput = some_goodput();
    const std::string text = sim_text(plan_of_two(), slow_step(), extras);
    for (const char* part : {"fails every 6 h", "a checkpoint of 9000 GB takes 3 min", "as asked", "30 min",
                             "80.00 %", "best", "45 min", "85.00 %", "3.125 s of the whole run's time"})
        EXPECT_THAT(text, HasSubstr(part));
}

TEST(WhatIfText, SaysThatRestartsAreTakenAsFree) {
    SimExtras extras;
    extras.goodput = some_goodput();
    EXPECT_THAT(what_if_text(extras, 2.5), HasSubstr("on average; a restart takes 5 min"));
    extras.goodput->restart_s = 0;
    const std::string text = what_if_text(extras, 2.5);
    EXPECT_THAT(text, HasSubstr("restarts taken as free: --restart-time says how long one takes"));
    EXPECT_THAT(text, testing::Not(HasSubstr("0.000 s")));
}

TEST(WhatIfText, TellsNoDifferenceThatIsRounding) {
    SimExtras extras = slow_extras();
    extras.what_if->causes = {{"a", 2, 4e-16, -3.3e-16, 0}, {"b", 2, -1e-6, 1e-6, 0}};
    const std::string text = what_if_text(extras, 2);
    EXPECT_THAT(text, testing::ContainsRegex("a +2.000 s +none +none\n"));
    EXPECT_THAT(text, testing::ContainsRegex("b +2.000 s +−1 µs +\\+1 µs\n"));
}

TEST(WhatIfText, StandsAloneAsItStandsInTheReport) {
    SimExtras extras = slow_extras();
    extras.goodput = some_goodput();
    const std::string alone = what_if_text(extras, 2.5), whole = sim_text(plan_of_two(), slow_step(), extras);
    EXPECT_TRUE(alone.starts_with("\nWhat if, each cause")) << alone;
    for (const char* heading : {"\nWhat if, ", "\nA long run"}) {
        const std::string section = alone.substr(alone.find(heading), 300);
        EXPECT_THAT(whole, HasSubstr(section.substr(0, section.find("\n\n"))));
    }
    EXPECT_EQ(what_if_text({}, 1), "");
}

TEST(WhatIfText, SaysGoodputInAPhrase) {
    Goodput run = some_goodput();
    EXPECT_EQ(goodput_phrase(run),
              "goodput 80.00 % with 30 min of work between checkpoints, at best 85.00 % with 45 min");
    run.interval_is_given = false;
    EXPECT_EQ(goodput_phrase(run),
              "goodput 85.00 % with 45 min of work between checkpoints, the best interval");
}

TEST(WhatIfText, KeepsToTheWidth) {
    SimExtras extras = slow_extras();
    extras.goodput = some_goodput();
    const std::string text = sim_text(plan_of_two(), slow_step(), extras, {.colour = false, .width = 100});
    const std::string about = text.substr(text.find("What if"));
    for (std::size_t begin = 0; begin < about.size();) {
        const std::size_t end = about.find('\n', begin);
        EXPECT_LE(display_width(about.substr(begin, end - begin)), 100U) << about.substr(begin, end - begin);
        begin = end + 1;
    }
}

TEST(WhatIfReportJson, HasEveryFigure) {
    SimExtras extras = slow_extras();
    extras.goodput = some_goodput();
    const json out = json::parse(sim_json(plan_of_two(), slow_step(), extras));
    EXPECT_EQ(out["scenario"]["what_if"]["stragglers"][0]["factor"], 0.8);
    EXPECT_EQ(out["what_if"]["step_time_without_s"], 2);
    EXPECT_NEAR(out["what_if"]["causes"][0]["added_exposed_wait_s"].get<double>(), 0.3, 1e-12);
    EXPECT_EQ(out["what_if"]["waited_for"]["ranks"], "1");
    EXPECT_EQ(out["failures"]["intervals"].size(), 4U);
    EXPECT_EQ(out["failures"]["intervals"][0]["rule"], "given");
    EXPECT_EQ(out["failures"]["step_time_with_failures_s"], 2.5 / 0.8);
}

}  // namespace
}  // namespace zeroplan
