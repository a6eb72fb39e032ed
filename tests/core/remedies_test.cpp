#include "zeroplan/remedies.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeroplan/io.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {
namespace {

using testing::HasSubstr;

std::string scenario(const std::string& model, const std::string& training, const std::string& cluster) {
    return R"({"model": {"preset": ")" + model + R"("}, "training": {)" + training + R"(}, "cluster": {)" +
           cluster + "}}";
}

Plan plan_of(const std::string& text, std::vector<Setting> settings = {}) {
    return make_plan(resolve_scenario({"", text, std::move(settings)}));
}

const Remedy* find(const std::vector<Remedy>& remedies, const std::string& flags) {
    const auto found = std::find_if(remedies.begin(), remedies.end(),
                                    [&](const Remedy& remedy) { return remedy.flags == flags; });
    return found == remedies.end() ? nullptr : &*found;
}

TEST(Remedies, AreNoneForAPlanThatFits) {
    EXPECT_TRUE(find_remedies(plan_of(scenario("gpt2", "", ""))).empty());
}

TEST(Remedies, NameTheNextStageThatFitsWithItsOwnPlansPeak) {
    // Adam's 16 bytes a parameter are 128 GB on every GPU at stage 0; stage 1 keeps a sixteenth of 12 of
    // them.
    const std::string text =
        scenario("llama-3-8b", R"("sequence_length": 2048)", R"("topology": "dgx-h100", "nodes": 2)");
    const Plan plan = plan_of(text);
    ASSERT_EQ(plan.memory.verdict, Verdict::does_not_fit);
    const auto remedies = find_remedies(plan);
    ASSERT_FALSE(remedies.empty());
    EXPECT_LE(remedies.size(), 3U);
    const Remedy* stage = find(remedies, "--zero 1");
    ASSERT_NE(stage, nullptr);
    const Plan with = plan_of(text, {text_setting("/training/zero_stage", "1", "--zero")});
    EXPECT_EQ(stage->overall_peak_device, with.memory.overall_peak_device);
    EXPECT_EQ(stage->verdict, with.memory.verdict);
    ASSERT_TRUE(stage->step_time_ratio);
    EXPECT_DOUBLE_EQ(*stage->step_time_ratio,
                     closed_form_step(with).step_time_s / closed_form_step(plan).step_time_s);
    EXPECT_FALSE(stage->needs_hardware);
}

TEST(Remedies, SplitAMicroBatchOnlyAsFarAsNeeded) {
    const std::string text =
        scenario("llama-3-8b", R"("zero_stage": 3, "sequence_length": 4096, "micro_batch_size": 8,
                 "gradient_accumulation_steps": 3)",
                 R"("topology": "dgx-h100")");
    const Plan plan = plan_of(text);
    ASSERT_EQ(plan.memory.verdict, Verdict::does_not_fit);
    const auto remedies = find_remedies(plan);
    const auto split = std::find_if(remedies.begin(), remedies.end(), [](const Remedy& remedy) {
        return remedy.flags.starts_with("--micro-batch");
    });
    ASSERT_NE(split, remedies.end());
    // Twice as large a micro-batch with half the passes does not fit, and the batch a step stays 8 · 3.
    EXPECT_THAT(split->flags,
                testing::AnyOf("--micro-batch 4 --grad-accum 6", "--micro-batch 2 --grad-accum 12",
                               "--micro-batch 1 --grad-accum 24"));
    const auto size = static_cast<std::uint64_t>(split->flags[14] - '0');
    if (size < 4) {
        const auto larger = plan_of(
            text, {text_setting("/training/micro_batch_size", std::to_string(2 * size), "--micro-batch"),
                   text_setting("/training/gradient_accumulation_steps", std::to_string(12 / size), "")});
        EXPECT_EQ(larger.memory.verdict, Verdict::does_not_fit);
    }
}

TEST(Remedies, PutHardwareLast) {
    const auto remedies = find_remedies(
        plan_of(scenario("llama-3-8b", R"("zero_stage": 3, "sequence_length": 8192, "micro_batch_size": 4)",
                         R"("topology": "dgx-h100")")));
    ASSERT_GE(remedies.size(), 2U);
    for (std::size_t i = 1; i < remedies.size(); ++i)
        EXPECT_LE(std::pair(remedies[i - 1].verdict, remedies[i - 1].needs_hardware),
                  std::pair(remedies[i].verdict, remedies[i].needs_hardware));
}

TEST(Remedies, SayWhichChangeComesClosestWhereNoneIsEnough) {
    const auto remedies = find_remedies(plan_of(scenario("llama-3-405b", "", R"("topology": "dgx-h100")")));
    ASSERT_EQ(remedies.size(), 1U);
    EXPECT_EQ(remedies[0].verdict, Verdict::does_not_fit);
    EXPECT_GT(remedies[0].overall_peak_device, remedies[0].capacity);
}

TEST(Remedies, PairTwoChangesWhereNoneIsEnough) {
    // Neither ZeRO 3, full recomputation nor 48 GB are enough for 8 billion parameters beside 8 x 24 GB at
    // stage 0: 16 bytes a parameter alone are 128 GB.
    const std::string text =
        scenario("llama-3-8b", R"("sequence_length": 4096)", R"("topology": "rtx-4090x8-pcie")");
    const Plan plan = plan_of(text);
    const auto remedies = find_remedies(plan);
    ASSERT_FALSE(remedies.empty());
    for (const Remedy& remedy : remedies) {
        EXPECT_NE(remedy.verdict, Verdict::does_not_fit);
        EXPECT_THAT(remedy.flags, HasSubstr(" --"));
    }
    const Remedy* pair = find(remedies, "--zero 3 --gpu l40s-48gb");
    ASSERT_NE(pair, nullptr);
    EXPECT_TRUE(pair->needs_hardware);
    EXPECT_THAT(pair->price, HasSubstr("% step time"));
    const std::vector<Setting> changes{text_setting("/training/zero_stage", "3", "--zero"),
                                       word_setting("/cluster/gpu", "l40s-48gb", "--gpu")};
    EXPECT_EQ(pair->overall_peak_device, plan_of(text, changes).memory.overall_peak_device);
    for (const Setting& one : changes) EXPECT_EQ(plan_of(text, {one}).memory.verdict, Verdict::does_not_fit);
}

TEST(Remedies, KeepToGpusThatTheMachinesTake) {
    for (const Remedy& remedy : find_remedies(plan_of(scenario(
             "llama-2-13b", R"("zero_stage": 3, "recompute": "full")", R"("topology": "rtx-4090x8-pcie")"))))
        EXPECT_THAT(remedy.flags, testing::Not(HasSubstr("sxm")));
}

TEST(Remedies, OfferShorterSequencesWhereThereIsRoomInTheList) {
    const std::string text = scenario("llama-3-8b", R"("zero_stage": 3, "recompute": "full",
                                      "sequence_length": 131072)",
                                      R"("topology": "dgx-h100")");
    const auto remedies = find_remedies(plan_of(text));
    const auto shorter = std::find_if(remedies.begin(), remedies.end(),
                                      [](const Remedy& r) { return r.flags.starts_with("--seq "); });
    ASSERT_NE(shorter, remedies.end());
    EXPECT_FALSE(shorter->needs_hardware);
    EXPECT_THAT(shorter->price, HasSubstr("shorter samples"));
    // Only as short as needed: twice the length doesn't fit for certain.
    const std::string length = shorter->flags.substr(6);
    const auto with = [&](const std::string& value) {
        return plan_of(text, {text_setting("/training/sequence_length", value, "--seq")}).memory;
    };
    EXPECT_EQ(with(length).overall_peak_device, shorter->overall_peak_device);
    EXPECT_EQ(with(length).verdict, Verdict::fits);
    EXPECT_NE(with(std::to_string(2 * std::stoull(length))).verdict, Verdict::fits);
    // No length helps where what stays between steps doesn't fit.
    for (const Remedy& remedy :
         find_remedies(plan_of(scenario("llama-3-405b", "", R"("topology": "dgx-h100")"))))
        EXPECT_THAT(remedy.flags, testing::Not(HasSubstr("--seq")));
}

/// Every change that is named fits for certain, if one of its kind that is stronger does.
TEST(Remedies, GoOnFromAMarginalChangeToOneThatFits) {
    bool was_marginal = false;
    for (const std::uint64_t length : {2048U, 2560U, 3072U, 3584U, 4096U, 5120U, 6144U, 7168U, 8192U}) {
        const std::string text = scenario(
            "llama-3-8b",
            R"("engine": "fsdp2", "micro_batch_size": 8, "sequence_length": )" + std::to_string(length),
            R"("topology": "dgx-h100")");
        const Plan plan = plan_of(text);
        if (plan.memory.verdict != Verdict::does_not_fit) continue;
        for (const Remedy& remedy : find_remedies(plan)) {
            if (!remedy.flags.starts_with("--micro-batch") ||
                remedy.flags.find(" --", 14) == std::string::npos)
                continue;
            if (remedy.verdict == Verdict::fits) {
                const auto size = static_cast<std::uint64_t>(remedy.flags[14] - '0');
                const auto twice = plan_of(
                    text,
                    {text_setting("/training/micro_batch_size", std::to_string(2 * size), ""),
                     text_setting("/training/gradient_accumulation_steps", std::to_string(4 / size), "")});
                was_marginal = was_marginal || (size < 8 && twice.memory.verdict == Verdict::marginal);
                EXPECT_NE(twice.memory.verdict, Verdict::fits) << length;
            } else {
                EXPECT_EQ(remedy.flags[14], '1') << length;
            }
        }
    }
    EXPECT_TRUE(was_marginal) << "no case was marginal on the way";
}

std::vector<std::string> flags_of(const std::vector<Remedy>& remedies) {
    std::vector<std::string> flags;
    for (const Remedy& remedy : remedies) flags.push_back(remedy.flags);
    return flags;
}

TEST(Remedies, AreTheSameHoweverTheyAreLookedFor) {
    // As found by planning every change anew and whole, each with its step's time.
    const auto check = [](const std::string& text, const std::vector<std::string>& flags) {
        const auto remedies = find_remedies(plan_of(text));
        EXPECT_EQ(flags_of(remedies), flags) << text;
        for (const Remedy& remedy : remedies) EXPECT_TRUE(remedy.step_time_ratio) << remedy.flags;
    };
    const std::string batch = R"("sequence_length": 2048, "gradient_accumulation_steps": 4, )";
    const std::string dgx = R"("topology": "dgx-h100")", pcie = R"("topology": "rtx-4090x8-pcie")";
    check(scenario("llama-3-8b", batch + R"("zero_stage": 3, "micro_batch_size": 12)", dgx),
          {"--micro-batch 4 --grad-accum 12", "--recompute full", "--gpu b200-sxm-180gb"});
    // No single change is enough: a pair, the one that needs no hardware or more nodes.
    check(scenario("llama-3-8b", batch + R"("zero_stage": 0)", pcie), {"--zero 3 --recompute full"});
    check(scenario("llama-3-405b", batch + R"("zero_stage": 3)", dgx), {"--recompute full --nodes 32"});
    // Nothing is enough: what comes closest.
    check(scenario("llama-3-405b", batch + R"("engine": "fsdp1", "zero_stage": 3)", dgx + R"(, "nodes": 2)"),
          {"--recompute full --gpu gb300-279gb"});
}

TEST(Remedies, EndWhereEnoughWasTried) {
    const Plan plan =
        plan_of(scenario("llama-3-8b", R"("zero_stage": 3, "sequence_length": 2048, "micro_batch_size": 12)",
                         R"("topology": "dgx-h100")"));
    const auto all = find_remedies(plan);
    ASSERT_GT(all.size(), 1U);
    // One operation is enough for one change alone, which is no remedy yet.
    const auto first = find_remedies(plan, 1);
    ASSERT_EQ(first.size(), 1U);
    EXPECT_EQ(first.front().verdict, Verdict::does_not_fit);
    EXPECT_TRUE(find_remedies(plan, 0).empty());
}

}  // namespace
}  // namespace zeroplan
