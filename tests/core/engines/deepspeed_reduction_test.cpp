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
