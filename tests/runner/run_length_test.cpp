#include "run_length.hpp"

#include <gtest/gtest.h>

#include "errors.hpp"
#include "stack_scenario.hpp"

namespace zeroplan::runner {
namespace {

Dataset dataset_of(const Scenario& scenario) {
    return {scenario.run.data, 42, 100, false};
}

TEST(RunLength, IsAllEpochsOrTheStatedSteps) {
    const BatchSchedule schedule{.rows = 200, .ranks = 2, .micro_batch_size = 32};
    EXPECT_EQ(step_count({.epochs = 3}, schedule), 12U);  // 100 rows a rank are 4 batches of up to 32
    EXPECT_EQ(step_count({.epochs = 3, .steps = 5}, schedule), 5U);
    EXPECT_EQ(step_count({.epochs = 3, .steps = 50}, schedule), 12U);
}

// 2 ranks · 16 bytes are kept of a step and 80 are written: 112 · 8 steps = 896 bytes.
TEST(RunLength, IsHeldAgainstTheMemoryThatIsLeft) {
    StackJob job;
    job.ranks = 2;
    const Scenario scenario = scenario_of(job);  // 200 samples: 4 steps an epoch, 2 epochs
    check_run_length(scenario, dataset_of(scenario), Bytes{896});
    const Error error = error_of([&] { check_run_length(scenario, dataset_of(scenario), Bytes{895}); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_input);
    EXPECT_EQ(error.place().pointer, "/run/data");
    EXPECT_NE(error.message().find("2 epochs of 200 samples are 8 steps"), std::string::npos);
    EXPECT_NE(error.message().find("896 B"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("895 B"), std::string::npos) << error.message();
}

TEST(RunLength, BlamesWhatMakesItLong) {
    Scenario scenario = scenario_of({});
    const auto pointer = [&] {
        return error_of([&] { check_run_length(scenario, dataset_of(scenario), Bytes{0}); }).place().pointer;
    };
    scenario.run.epochs = 1000;
    EXPECT_EQ(pointer(), "/run/epochs");
    scenario.run.steps = 500;
    EXPECT_EQ(pointer(), "/run/steps");
}

TEST(RunLength, RefusesMicroBatchesWithoutSamples) {
    StackJob job;
    job.gradient_accumulation_steps = 200;
    const Scenario enough = scenario_of(job);
    check_run_length(enough, dataset_of(enough), Bytes{1 << 20});
    job.gradient_accumulation_steps = 201;
    const Scenario scenario = scenario_of(job);
    const Error error = error_of([&] { check_run_length(scenario, dataset_of(scenario), Bytes{1 << 20}); });
    EXPECT_EQ(error.place().pointer, "/training/gradient_accumulation_steps");
    EXPECT_NE(error.message().find("201 micro-batches"), std::string::npos);
    EXPECT_NE(error.message().find("200 samples"), std::string::npos);
}

}  // namespace
}  // namespace zeroplan::runner
