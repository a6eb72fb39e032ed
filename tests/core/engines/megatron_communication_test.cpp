#include <gtest/gtest.h>

#include "core/engines/megatron_scenarios.hpp"
#include "core/engines/program_messages.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {
namespace {

/// 2 sequences of 128 tokens, hidden 64.
constexpr std::uint64_t activation = 2 * 128 * 64;

TEST(MegatronCommunication, TensorParallelismAllReducesTwiceALayerAndPass) {
    const Plan plan = make_plan(megatron_scenario("gpt", {.tensor = 2}));
    const auto found = collectives_of(plan, GroupKind::tensor_group);
    // Forward: embedding and 2 a layer. Backward: 2 a layer and the output layer.
    EXPECT_EQ(found.at({CollectiveKind::all_reduce, activation}), 1U + 2 * 8 + 2 * 8 + 1);
    EXPECT_EQ(found.at({CollectiveKind::all_reduce, 2 * 128}), 3U);  // vocab-parallel loss
    EXPECT_EQ(found.size(), 2U);
}

TEST(MegatronCommunication, SequenceParallelismGathersAndScatters) {
    const Plan plan = make_plan(megatron_scenario("gpt", {.tensor = 2, .sequence = true}));
    const auto found = collectives_of(plan, GroupKind::tensor_group);
    // Gathers: 2 a layer forward, 2 again for the weights' gradients, 2 of output gradients; output layer 2;
    // embedding's backward 1. Reduce-scatters: 2 a layer forward, 2 backward; embedding 1, output layer 1.
    EXPECT_EQ(found.at({CollectiveKind::all_gather, activation}), 6U * 8 + 2 + 1);
    EXPECT_EQ(found.at({CollectiveKind::reduce_scatter, activation}), 4U * 8 + 1 + 1);
}

TEST(MegatronCommunication, FullRecomputeCommunicatesAgain) {
    const auto count = [](Recompute recompute) {
        const Plan plan = make_plan(megatron_scenario("gpt", {.tensor = 2, .recompute = recompute}));
        return collectives_of(plan, GroupKind::tensor_group).at({CollectiveKind::all_reduce, activation});
    };
    EXPECT_EQ(count(Recompute::full), count(Recompute::none) + 2 * 8);
}

TEST(MegatronCommunication, ExpertsExchangeTokensFourTimesALayer) {
    const Plan plan = make_plan(megatron_scenario("deepseek", {.data = 4, .expert = 2}));
    // 7 layers with experts: dispatch and combine, forward and backward; 2 experts a token, 64 wide.
    const auto found = collectives_of(plan, GroupKind::expert_group);
    EXPECT_EQ(found.at({CollectiveKind::all_to_all, 2 * activation}), 4U * 7);
}

TEST(MegatronCommunication, ContextParallelismPassesKeysAndValues) {
    const Plan plan = make_plan(megatron_scenario("llama", {.context = 2}));
    // Keys and values of all 256 tokens, 64 wide each, beside attention: forward and twice in backward.
    const auto found = collectives_of(plan, GroupKind::context_group);
    EXPECT_EQ(found.at({CollectiveKind::all_gather, 2 * activation}), 2U * 8);
    EXPECT_EQ(found.at({CollectiveKind::reduce_scatter, 2 * activation}), 8U);
}

TEST(MegatronCommunication, EveryMessageBetweenStagesIsReceived) {
    for (const std::uint64_t chunks : {1U, 2U}) {
        for (const std::uint64_t micro_batches : {4U, 24U}) {
            const Plan plan = make_plan(megatron_scenario(
                "llama", {.pipeline = 4, .chunks = chunks, .micro_batches = micro_batches, .tied = false}));
            const auto balance = sent_less_received(plan);
            EXPECT_EQ(balance.size(), 2 * (4 * chunks - 1));
            for (const auto& [channel, count] : balance) EXPECT_EQ(count, 0) << channel;
        }
    }
}

TEST(MegatronCommunication, MegatronLm2021SendsEachRanksPartOfAnActivation) {
    const auto sent = [](const std::string& version) {
        const Plan plan = make_plan(megatron_scenario(
            "gpt", {.tensor = 2, .pipeline = 2, .compute = DType::fp16, .engine_version = version}));
        for (const Operation& operation : plan.programs[0].step[0].operations)
            if (const auto* t = std::get_if<Transfer>(&operation.body); t != nullptr && t->send)
                return t->elements;
        return std::uint64_t{0};
    };
    EXPECT_EQ(sent(""), activation);
    EXPECT_EQ(sent("megatron-lm 2021"), activation / 2);
}

/// A step's time at `micro_batches` micro-batches, stages side by side.
double seconds(std::uint64_t chunks, std::uint64_t micro_batches) {
    Scenario scenario = megatron_scenario(
        "llama", {.pipeline = 4, .chunks = chunks, .micro_batches = micro_batches, .tied = false});
    scenario.cluster.gpu.link = "nvlink4";
    scenario.cluster.gpu.link_bytes_per_s = 450e9;
    double slowest = 0;
    for (const StepTimeline& step : closed_form_steps(make_plan(scenario)))
        slowest = std::max(slowest, step.step_time_s);
    return slowest;
}

TEST(MegatronCommunication, MoreMicroBatchesFillThePipeline) {
    EXPECT_LT(seconds(1, 64), 16 * seconds(1, 4));
    EXPECT_GT(seconds(1, 64), 8 * seconds(1, 4));
    // One long step is continued in a straight line.
    EXPECT_NEAR(seconds(1, 4000) - seconds(1, 3000), 2 * (seconds(1, 3500) - seconds(1, 3000)), 1e-9);
}

TEST(MegatronCommunication, OverlappedGradientsAreReducedInBuckets) {
    MegatronCase wanted{.data = 4, .zero_stage = 1};
    const auto reductions = [&] {
        std::uint64_t count = 0, elements = 0;
        for (const auto& [key, times] :
             collectives_of(make_plan(megatron_scenario("gpt", wanted)), GroupKind::shard_group)) {
            if (key.first != CollectiveKind::reduce_scatter) continue;
            count += times;
            elements += times * key.second;
        }
        return std::pair(count, elements);
    };
    const auto [once, whole] = reductions();
    EXPECT_EQ(once, 1U);
    wanted.megatron_json = R"({"overlap_grad_reduce": true, "ddp_bucket_size": 100000})";
    const auto [buckets, sum] = reductions();
    EXPECT_GT(buckets, 2U);
    EXPECT_GE(sum, whole);
}

}  // namespace
}  // namespace zeroplan
