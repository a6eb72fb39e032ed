#include "zeroplan/estimate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

Scenario scenario_of(const std::string& model, const std::string& training) {
    return resolve_scenario({.text = fmt::format(R"({{"schema": 1, "model": {{{}}}, "training": {{{}}},
                                                     "cluster": {{"topology": "dgx-h100", "nodes": 2}}}})",
                                                 model, training)});
}

/// The highest live sum of the whole program, by the plan's own accounting.
Bytes highest_of(const Plan& plan) {
    Bytes highest;
    for (const StepProgram& program : plan.programs) {
        const auto loaded = live_after({&program.load, 1}, {});
        const auto ready = live_after({&program.init, 1}, loaded);
        const auto resident = live_after(program.first_step, ready);
        for (const Bytes peak : {memory_peak(program, {&program.load, 1}, {}).allocated,
                                 memory_peak(program, {&program.init, 1}, loaded).allocated,
                                 memory_peak(program, program.first_step, ready).allocated,
                                 memory_peak(program, program.step, resident).allocated})
            highest = std::max(highest, peak);
    }
    return highest;
}

void expect_as_planned(const Scenario& scenario, const std::string& what) {
    const Plan plan = make_plan(scenario);
    const MemoryEstimate estimate = estimate_memory(scenario);
    EXPECT_EQ(estimate.peak_live, highest_of(plan)) << what;
    EXPECT_EQ(estimate.runtime, plan.rank_groups.front().runtime) << what;
    EXPECT_EQ(estimate.runtime_low, plan.rank_groups.front().runtime_low) << what;
    EXPECT_LE(estimate.least_device(), plan.memory.low) << what;
}

constexpr std::array models{R"("preset": "gpt2")", R"("preset": "gemma-2-9b")", R"("preset": "mixtral-8x7b")",
                            R"("preset": "bert-large-uncased")"};

TEST(Estimate, IsThePlansPeakOfEveryStageAndRecomputation) {
    for (const char* model : models)
        for (const char* recompute : {"none", "selective", "full"})
            for (int stage = 0; stage <= 3; ++stage) {
                const std::string training =
                    fmt::format(R"("zero_stage": {}, "recompute": "{}", "micro_batch_size": 2,
                                   "gradient_accumulation_steps": 3)",
                                stage, recompute);
                expect_as_planned(scenario_of(model, training), std::string(model) + training);
            }
}

TEST(Estimate, IsThePeakOfLiveTensorsUnderPyTorchsEngines) {
    for (const char* model : {R"("preset": "gpt2")", R"("preset": "mixtral-8x7b")"})
        for (const char* engine :
             {R"("engine": "fsdp1", "zero_stage": 3)", R"("engine": "fsdp1", "zero_stage": 2)",
              R"("engine": "fsdp2", "zero_stage": 3)", R"("engine": "fsdp2", "zero_stage": 2)",
              R"("engine": "ddp", "zero_stage": 0)", R"("engine": "deepspeed", "zero_stage": 3)"})
            for (const char* recompute : {"none", "full"}) {
                const std::string training = fmt::format(
                    R"({}, "recompute": "{}", "gradient_accumulation_steps": 2)", engine, recompute);
                expect_as_planned(scenario_of(model, training), std::string(model) + training);
            }
}

TEST(Estimate, FoldsEqualLayersAndWalksTheRest) {
    const auto layers = [](const std::string& training) {
        return estimate_memory(scenario_of(R"("preset": "llama-3-70b")", training)).repeated_layers;
    };
    EXPECT_EQ(layers(R"("zero_stage": 3)"), 80U);
    EXPECT_EQ(layers(R"("engine": "fsdp2", "zero_stage": 3)"), 80U);
    EXPECT_EQ(layers(R"("zero_stage": 3, "recompute": "selective_layer", "recompute_every": 3)"), 0U);
    EXPECT_EQ(layers(R"("engine": "deepspeed", "zero_stage": 2)"), 0U);
}

TEST(Estimate, RefusesWhatThePlanRefuses) {
    EXPECT_THROW(
        estimate_memory(scenario_of(R"("preset": "llama-3-8b")", R"("engine": "fsdp1", "zero_stage": 3,
                                             "pipeline_parallel": 2)")),
        Error);
}

}  // namespace
}  // namespace zeroplan
