#include "zeroplan/runner/host_run.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "errors.hpp"
#include "ranks.hpp"
#include "stack_scenario.hpp"

namespace zeroplan::runner {
namespace {

/// Runs the job with every rank a thread of this process; returns rank 0's result.
HostRun run(const StackJob& job, HostRunOptions options = {}) {
    const Plan plan = make_plan(scenario_of(job));
    HostRun result;
    run_ranks(static_cast<int>(job.ranks), [&](HostWorld& world) {
        HostRun mine = run_on_host(plan, world, options);
        if (world.rank() == 0) result = std::move(mine);
    });
    return result;
}

void expect_planned_is_measured(const StackJob& job, const RunReport& report) {
    const Plan plan = make_plan(scenario_of(job));
    for (const Agreement& row : agreement(plan, report))
        EXPECT_EQ(row.planned, row.measured) << "rank " << row.rank << " " << to_string(row.category);
}

struct Case {
    std::uint64_t ranks;
    DType dtype;
    Optimizer optimizer;
    std::uint64_t micro_batches = 1;
    std::optional<GradientSync> sync = std::nullopt;
};
std::string name_of(const testing::TestParamInfo<Case>& info) {
    const Case& c = info.param;
    std::string name = std::to_string(c.ranks) + "_ranks_" + std::string(to_string(c.dtype)) + "_" +
                       std::string(to_string(c.optimizer));
    if (c.micro_batches > 1) name += "_" + std::to_string(c.micro_batches) + "_micro_batches";
    if (c.sync) name += "_" + std::string(to_string(*c.sync));
    return name;
}

class Stages : public testing::TestWithParam<Case> {};

TEST_P(Stages, GiveTheSameParametersAndTakeThePlannedBytes) {
    const Case& c = GetParam();
    StackJob job;
    // Widths that don't divide by anything, so that slices cut through parameters and padding is needed.
    job.layers = {{33, 47, true, ActivationFunction::gelu},
                  {47, 21, false, ActivationFunction::tanh},
                  {21, 33, true, ActivationFunction::none}};
    job.ranks = c.ranks;
    job.dtype = c.dtype;
    job.optimizer = c.optimizer;
    job.micro_batch_size = 16;
    job.gradient_accumulation_steps = c.micro_batches;
    job.gradient_sync = c.sync;
    job.data = "synthetic:101x33";  // uneven over the ranks, with partial and empty batches
    RunReport first;
    for (const std::uint32_t stage : {0U, 1U, 2U, 3U}) {
        job.zero_stage = stage;
        const RunReport report = run(job).report;
        SCOPED_TRACE("stage " + std::to_string(stage));
        expect_planned_is_measured(job, report);
        if (stage == 0) first = report;
        EXPECT_EQ(report.final_parameters_sha256, first.final_parameters_sha256);
        EXPECT_EQ(report.losses, first.losses);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, Stages,
    testing::Values(Case{1, DType::fp32, Optimizer::sgd}, Case{2, DType::fp32, Optimizer::adam},
                    Case{3, DType::fp32, Optimizer::sgd}, Case{4, DType::fp32, Optimizer::sgd_momentum},
                    Case{8, DType::fp32, Optimizer::adam}, Case{1, DType::bf16, Optimizer::adam},
                    Case{2, DType::bf16, Optimizer::sgd}, Case{3, DType::bf16, Optimizer::adamw},
                    Case{4, DType::bf16, Optimizer::adam}, Case{8, DType::bf16, Optimizer::sgd},
                    Case{2, DType::fp16, Optimizer::adam},
                    Case{2, DType::fp32, Optimizer::sgd, 3, GradientSync::always},
                    Case{2, DType::fp32, Optimizer::adam, 3, GradientSync::last},
                    Case{2, DType::bf16, Optimizer::adam, 3, GradientSync::always},
                    Case{2, DType::bf16, Optimizer::sgd, 3, GradientSync::last}),
    name_of);

TEST(HostRun, ReadsNoMemoryThatNothingHasWritten) {
    for (const std::uint32_t stage : {0U, 1U, 2U, 3U})
        for (const DType dtype : {DType::fp32, DType::bf16}) {
            StackJob job;
            job.ranks = 2;
            job.zero_stage = stage;
            job.dtype = dtype;
            job.optimizer = Optimizer::adam;
            HostRunOptions options;
            options.fill = Arena::Fill::poison;
            const HostRun poisoned = run(job, options), usual = run(job);
            EXPECT_EQ(poisoned.report.final_parameters_sha256, usual.report.final_parameters_sha256);
            EXPECT_EQ(poisoned.report.losses, usual.report.losses);
        }
}

TEST(HostRun, SharesStateInGroupsOfTheRanks) {
    StackJob job;
    job.ranks = 4;
    const RunReport whole = run(job).report;
    job.shard_group = 2;
    for (const std::uint32_t stage : {1U, 2U, 3U}) {
        job.zero_stage = stage;
        const RunReport report = run(job).report;
        expect_planned_is_measured(job, report);
        // Sums are rounded after each group: not bitwise the sum over all ranks, but close.
        ASSERT_EQ(report.losses.size(), whole.losses.size());
        EXPECT_NEAR(report.losses.back(), whole.losses.back(), 1e-6);
    }
}

TEST(HostRun, ReportsTheMeanLossOverAllSamples) {
    // Before any update every batch is seen with the same parameters, so the first epoch of a learning rate
    // of 0 gives means that don't depend on how the samples are shared out.
    StackJob job;
    job.learning_rate = 0;
    job.epochs = 1;
    job.data = "synthetic:64x100";
    job.micro_batch_size = 64;
    const double alone = run(job).report.losses.at(0);
    job.ranks = 3;
    const RunReport shared = run(job).report;
    EXPECT_EQ(shared.losses.size(), 1U);
    EXPECT_NEAR(shared.losses.at(0), alone, 1e-6 * alone);
}

TEST(HostRun, TrainsACrossEntropy) {
    StackJob job;
    job.layers = {{20, 30, true, ActivationFunction::relu}, {30, 7, true, ActivationFunction::none}};
    job.loss = "cross_entropy";
    job.optimizer = Optimizer::adamw;
    job.epochs = 60;
    job.ranks = 2;
    job.zero_stage = 3;
    const RunReport report = run(job).report;
    EXPECT_NEAR(report.losses.front(), 1.95, 0.3);  // log(7) = 1.946: nothing is known yet
    EXPECT_LT(report.losses.back(), 0.5);           // random labels, learnt by heart
    expect_planned_is_measured(job, report);
}

TEST(HostRun, EndsAfterTheStepsAskedFor) {
    StackJob job;
    Scenario scenario = scenario_of(job);
    scenario.run.steps = 3;
    const Plan plan = make_plan(scenario);
    std::vector<std::uint64_t> seen;
    HostRunOptions options;
    options.on_step = [&](const StepProgress& progress) { seen.push_back(progress.step); };
    run_ranks(
        1, [&](HostWorld& world) { EXPECT_EQ(run_on_host(plan, world, options).report.losses.size(), 3U); });
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(HostRun, StopsWhereTrainingDiverges) {
    StackJob job;
    job.ranks = 2;
    job.learning_rate = 1e6;
    const Error error = error_of([&] { run(job); });
    EXPECT_EQ(error.code(), ErrorCode::run_failed);
    EXPECT_NE(std::string(error.what()).find("learning_rate"), std::string::npos) << error.what();
}

TEST(HostRun, RecordsTheLastStepOfEveryRank) {
    StackJob job;
    job.ranks = 2;
    job.zero_stage = 3;
    HostRunOptions options;
    options.trace = true;
    const std::string trace = run(job, options).trace;
    for (const char* part : {"\"rank 0\"", "\"rank 1\"", "\"gather\"", "\"reduce\"", "\"memory\"",
                             "all_gather", "forward layers.0 linear"})
        EXPECT_NE(trace.find(part), std::string::npos) << part;
}

TEST(CheckHostRun, NamesWhatItCanNotTrain) {
    const auto refused = [](auto change) {
        Scenario scenario = scenario_of({});
        change(scenario);
        return std::string(error_of([&] { check_host_run(scenario); }).what());
    };
    EXPECT_NO_THROW(check_host_run(scenario_of({})));
    EXPECT_NE(refused([](Scenario& s) { s.training.engine = EngineKind::fsdp2; }).find("fsdp2"),
              std::string::npos);
    EXPECT_NE(refused([](Scenario& s) { s.training.sequence_length = 128; }).find("128"), std::string::npos);
    EXPECT_NE(refused([](Scenario& s) { s.cluster.gpu.is_host = false; }).find("this machine"),
              std::string::npos);
    EXPECT_NE(refused([](Scenario& s) { s.run.data = "synthetic:10x99"; }).find("99"), std::string::npos);
    const std::string norm =
        refused([](Scenario& s) { s.model.block_kinds[1].operators[0].kind = OperatorKind::norm; });
    EXPECT_NE(norm.find("plan and sim know this model"), std::string::npos) << norm;
}

}  // namespace
}  // namespace zeroplan::runner
