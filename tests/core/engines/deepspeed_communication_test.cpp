#include <gtest/gtest.h>

#include "core/engines/megatron_scenarios.hpp"
#include "core/engines/program_messages.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {
namespace {

/// Megatron-DeepSpeed on `wanted`'s model, 2 sequences of 128 tokens, hidden 64, 8 layers.
Scenario megatron_deepspeed(MegatronCase wanted, std::uint32_t zero_stage = 1) {
    wanted.compute = DType::fp16;
    wanted.tied = false;
    Scenario scenario = megatron_scenario("gpt", wanted);
    TrainingConfig& training = scenario.training;
    training.engine = EngineKind::deepspeed;
    training.zero_stage = zero_stage;
    training.shard_group = zero_stage == 0 ? 1 : training.data_parallel;
    training.parameter_dtype = training.gradient_dtype = training.reduce_dtype = DType::fp16;
    training.master_dtype = DType::fp32;
    scenario.cluster.gpu.fp16_flop_per_s = 312e12;
    scenario.cluster.gpu.link = "nvlink4";
    scenario.cluster.gpu.link_bytes_per_s = 450e9;
    return scenario;
}

constexpr std::uint64_t activation = 2 * 128 * 64;

TEST(DeepSpeedCommunication, TensorParallelismAllReducesTwiceALayerAndPass) {
    const auto found = collectives_of(make_plan(megatron_deepspeed({.tensor = 2})), GroupKind::tensor_group);
    // Forward: embedding and 2 a layer. Backward: 2 a layer and the output layer.
    EXPECT_EQ(found.at({CollectiveKind::all_reduce, activation}), 1U + 2 * 8 + 2 * 8 + 1);
}

TEST(DeepSpeedCommunication, StagesSendPartsAndGatherThem) {
    const Plan plan = make_plan(megatron_deepspeed({.tensor = 2, .pipeline = 2, .micro_batches = 4}));
    std::uint64_t sent = 0;
    for (const Section& section : plan.programs.front().step)
        for (const Operation& operation : section.operations)
            if (const auto* t = std::get_if<Transfer>(&operation.body); t != nullptr && t->send) {
                EXPECT_EQ(t->elements, activation / 2);
                sent += section.repeat;
            }
    EXPECT_EQ(sent, 4U);
    // Stage 0 gathers its output and the gradient of it in each backward, stage 1 its input in each forward.
    const CollectiveSize gather{CollectiveKind::all_gather, activation};
    EXPECT_EQ(collectives_of(plan, GroupKind::tensor_group, 0).at(gather), 2U * 4);
    EXPECT_EQ(collectives_of(plan, GroupKind::tensor_group, 1).at(gather), 4U);
}

// Every layer's input is gathered once, before the layer runs again; in between one half of each is there.
TEST(DeepSpeedCommunication, PartitionedCheckpointsAreGatheredAgain) {
    Scenario scenario = megatron_deepspeed({.tensor = 2, .recompute = Recompute::full}, 0);
    scenario.training.micro_batch_size = 32;  // activations decide the peak
    constexpr std::uint64_t checkpoint = 16 * activation;
    const Plan whole = make_plan(scenario);
    scenario.training.deepspeed_json = R"({"activation_checkpointing": {"partition_activations": true}})";
    const Plan parts = make_plan(scenario);
    const CollectiveSize gather{CollectiveKind::all_gather, checkpoint};
    EXPECT_EQ(collectives_of(whole, GroupKind::tensor_group).count(gather), 0U);
    EXPECT_EQ(collectives_of(parts, GroupKind::tensor_group).at(gather), 8U);
    // Of 8 checkpoints in 16 bit; the last one is whole while its layer runs.
    const auto peak = [](const Plan& plan) { return plan.rank_groups[0].steady.allocated.count(); };
    EXPECT_GE(peak(whole) - peak(parts), 7U * checkpoint);
    EXPECT_LE(peak(whole) - peak(parts), 8U * checkpoint);
    EXPECT_TRUE(parts.warnings == whole.warnings);
    scenario.training.recompute = Recompute::none;
    EXPECT_EQ(make_plan(scenario).warnings.front().code, "no_effect");
}

TEST(DeepSpeedCommunication, EveryMessageBetweenStagesIsReceived) {
    for (const std::uint64_t micro_batches : {1U, 2U, 4U, 24U}) {
        const Plan plan = make_plan(megatron_deepspeed({.pipeline = 4, .micro_batches = micro_batches}));
        const auto balance = sent_less_received(plan);
        EXPECT_EQ(balance.size(), 2U * 3);
        for (const auto& [channel, count] : balance) EXPECT_EQ(count, 0) << channel;
    }
}

double seconds(const Scenario& scenario) {
    double slowest = 0;
    for (const StepTimeline& step : closed_form_steps(make_plan(scenario)))
        slowest = std::max(slowest, step.step_time_s);
    return slowest;
}

TEST(DeepSpeedCommunication, MoreMicroBatchesFillThePipeline) {
    const auto at = [](std::uint64_t micro_batches) {
        return seconds(megatron_deepspeed({.pipeline = 4, .micro_batches = micro_batches}, 0));
    };
    // m micro-batches take m + p - 1 turns: 4 take 7, 64 take 67.
    EXPECT_LT(at(64), 16 * at(4));
    EXPECT_GT(at(64), 8 * at(4));
}

TEST(DeepSpeedCommunication, RanksOfOneStageMayRunDifferentPrograms) {
    const Plan plan = make_plan(megatron_deepspeed({.pipeline = 2, .data = 4, .micro_batches = 4}));
    ASSERT_GT(plan.programs.size(), 2U);
    const std::vector<StepTimeline> steps = closed_form_steps(plan);
    for (const StepTimeline& step : steps)
        EXPECT_NEAR(step.step_time_s, steps.front().step_time_s, 0.2 * steps.front().step_time_s);
}

}  // namespace
}  // namespace zeroplan
