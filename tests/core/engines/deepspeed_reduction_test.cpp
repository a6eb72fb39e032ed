#include <gtest/gtest.h>

#include "core/engines/torch_scenarios.hpp"
#include "engines/engine.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {
namespace {

/// 14 blocks of 4 sequences on 4 ranks; gradients in 16 bit.
Scenario reducing(std::uint32_t zero_stage, std::string deepspeed_json) {
    Scenario scenario =
        torch_scenario(EngineKind::deepspeed, build_llama(small_llama(), torch_lowering()), 4, zero_stage);
    scenario.cluster.gpu.hbm_bytes_per_s = 3e12;
    scenario.cluster.gpu.link = "nvlink4";
    scenario.cluster.gpu.link_bytes_per_s = 450e9;
    TrainingConfig& training = scenario.training;
    training.shard_group = 4;
    training.parameter_dtype = training.gradient_dtype = training.reduce_dtype = DType::bf16;
    training.master_dtype = DType::fp32;
    training.deepspeed_json = std::move(deepspeed_json);
    return scenario;
}

/// Operations of the step's last section that copy out of a flat bucket into the partition's gradients.
std::vector<Operation> copies_to_partition(const StepProgram& program) {
    std::vector<Operation> found;
    for (const Operation& operation : program.step.back().operations)
        if (const auto* a = std::get_if<Accumulate>(&operation.body))
            if (program.buffers[a->from.buffer].role == BufferRole::gradient_bucket &&
                program.buffers[a->to.buffer].role == BufferRole::gradients)
                found.push_back(operation);
    return found;
}

TEST(DeepSpeedReduction, CopiesOneGradientOutOfTheBucketAtATime) {
    // Bucket and partition are both flat and hold more than one parameter.
    for (const std::uint32_t stage : {1U, 2U}) {
        const Scenario scenario = reducing(stage, "{}");
        const StepProgram program = run_engine(scenario).programs.front();
        const std::vector<Operation> copies = copies_to_partition(program);
        ASSERT_FALSE(copies.empty()) << stage;
        for (const Operation& copy : copies) {
            const auto& body = std::get<Accumulate>(copy.body);
            EXPECT_EQ(body.elements, scenario.model.parameters[body.unit].numel) << stage;
        }
    }
}

constexpr const char* overlapping =
    R"({"zero_optimization": {"overlap_comm": true, "reduce_bucket_size": 20000}})";
constexpr const char* in_line =
    R"({"zero_optimization": {"overlap_comm": false, "reduce_bucket_size": 20000}})";

TEST(DeepSpeedReduction, CopiesOnTheStreamThatHasReduced) {
    for (const auto& [json, stream] : {std::pair{overlapping, Stream::reduce}, {in_line, Stream::compute}})
        for (const Operation& copy : copies_to_partition(run_engine(reducing(2, json)).programs.front()))
            EXPECT_EQ(copy.stream, stream) << json;
}

TEST(DeepSpeedReduction, FillsOneBucketWhileTheOtherIsReduced) {
    // The bucket that is filled was reduced two reductions ago: what computes has waited for that.
    const StepProgram program = run_engine(reducing(2, overlapping)).programs.front();
    std::vector<BufferId> joined;
    for (const Operation& operation : program.step.back().operations)
        if (const auto* a = std::get_if<Accumulate>(&operation.body))
            if (program.buffers[a->from.buffer].elements == 20000 && a->elements > 0 &&
                program.buffers[a->to.buffer].role == BufferRole::gradient_bucket)
                joined.push_back(a->from.buffer);
    ASSERT_GT(joined.size(), 2U);
    for (std::size_t i = 2; i < joined.size(); ++i) EXPECT_NE(joined[i], joined[i - 1]);
    EXPECT_EQ(joined[0], joined[2]);
}

TEST(DeepSpeedReduction, FlattensTheBucketAndCopiesBackWhatIsOwned) {
    const Scenario scenario = reducing(2, "{}");
    const StepProgram program = run_engine(scenario).programs.front();
    std::uint64_t flattened = 0, copied_back = 0, bucket = 500'000'000;
    for (const Operation& operation : program.step.back().operations)
        if (const auto* a = std::get_if<Accumulate>(&operation.body)) {
            const Buffer &from = program.buffers[a->from.buffer], &to = program.buffers[a->to.buffer];
            if (from.role != BufferRole::gradient_bucket || to.role != BufferRole::gradient_bucket) continue;
            (from.elements == bucket ? flattened : copied_back) += a->elements;
        }
    EXPECT_EQ(flattened, scenario.model.parameter_count());
    // Of 4 ranks; the partitions' ends are aligned.
    EXPECT_NEAR(static_cast<double>(copied_back), static_cast<double>(flattened) / 4, 8);
}

TEST(DeepSpeedReduction, OverlapShortensTheStep) {
    // Never less than what computes, nor than what is reduced.
    const auto timeline = [](std::uint32_t stage, const char* json) {
        Scenario scenario = reducing(stage, json);
        scenario.training.sequence_length = 512;
        return closed_form_step(make_plan(scenario));
    };
    for (const std::uint32_t stage : {1U, 2U}) {
        const StepTimeline beside = timeline(stage, overlapping), behind = timeline(stage, in_line);
        EXPECT_LT(beside.step_time_s, behind.step_time_s) << stage;
        EXPECT_LT(beside.exposed_communication_s, behind.exposed_communication_s) << stage;
        EXPECT_GT(beside.step_time_s, beside.compute_s) << stage;
    }
}

TEST(DeepSpeedReduction, TakesAsLongFromALargeBucketAsFromASmallOne) {
    // small_llama's gradients all fit in either.
    const auto step = [](const char* json) {
        return closed_form_step(make_plan(reducing(2, json))).step_time_s;
    };
    EXPECT_DOUBLE_EQ(step(R"({"zero_optimization": {"reduce_bucket_size": 500000000}})"),
                     step(R"({"zero_optimization": {"reduce_bucket_size": 1000000}})"));
}

}  // namespace
}  // namespace zeroplan
