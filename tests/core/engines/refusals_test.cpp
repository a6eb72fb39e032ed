#include <gtest/gtest.h>

#include "zeroplan/io.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {
namespace {

Plan plan_of(const std::string& model, const std::string& engine, const std::string& more) {
    const std::string keys = more.empty() ? "" : ", " + more;
    return make_plan(
        resolve_scenario({"",
                          R"({"model": {"preset": ")" + model + R"("}, "training": {"engine": ")" + engine +
                              R"(", "sequence_length": 512)" + keys + "}}",
                          {}}));
}

/// Where the refusal points; "" if the scenario is planned.
std::string refused(const std::string& model, const std::string& engine, const std::string& more) {
    try {
        (void)plan_of(model, engine, more);
    } catch (const Error& error) {
        EXPECT_FALSE(error.hint().empty()) << more;
        return error.place().pointer;
    }
    return "";
}

bool warns(const Plan& plan, const std::string& code, const std::string& part) {
    for (const Warning& warning : plan.warnings)
        if (warning.code == code && warning.message.find(part) != std::string::npos) return true;
    return false;
}

struct Refusal {
    const char* keys;
    const char* place;
};

// Each key would be planned as if it weren't there.
TEST(MegatronRefuses, WhatItDoesntModel) {
    constexpr Refusal refusals[] = {
        {R"("adapter": {"kind": "lora", "rank": 16, "targets": "all_linear"})", "/training/adapter"},
        {R"("freeze": ["*"])", "/training/freeze"},
        {R"("recompute": "selective_op")", "/training/recompute"},
        {R"("offload_parameters": "cpu")", "/training/offload_parameters"},
        {R"("offload_gradients": "cpu")", "/training/offload_gradients"},
        {R"("offload_optimizer": "nvme")", "/training/offload_optimizer"},
        {R"("offload_optimizer": "cpu")", "/training/offload_optimizer"},  // at stage 0
        {R"("loss": "chunked")", "/training/loss"},
        {R"("optimizer_implementation": "foreach")", "/training/optimizer_implementation"},
        {R"("optimizer_implementation": "in_backward")", "/training/optimizer_implementation"},
        {R"("optimizer": "lamb")", "/training/optimizer"},
        {R"("optimizer": "adagrad")", "/training/optimizer"},
        {R"("kernels": "compiled")", "/training/kernels"},
        {R"("attention": "sdpa")", "/training/attention"},
        {R"("fp8": {"all_gather": true})", "/training/fp8/all_gather"},
        {R"("expert_parallel": 2)", "/training/expert_parallel"},
        {R"("tensor_parallel": 2, "async_tensor_parallel": true)", "/training/async_tensor_parallel"},
        {R"("tensor_parallel": 2, "megatron": {"tp_comm_overlap": true})", "/training/async_tensor_parallel"},
    };
    for (const char* engine : {"megatron", "megatron_fsdp"}) {
        EXPECT_EQ(refused("gpt2", engine, ""), "");
        for (const Refusal& refusal : refusals)
            EXPECT_EQ(refused("gpt2", engine, refusal.keys), refusal.place) << engine << ' ' << refusal.keys;
    }
    // Megatron-FSDP's collectives have a dtype of their own (grad_comm_dtype).
    EXPECT_EQ(refused("gpt2", "megatron", R"("reduce_dtype": "bf16")"), "/training/reduce_dtype");
    EXPECT_EQ(refused("gpt2", "megatron", R"("reduce_dtype": "bf16", "gradient_dtype": "bf16")"), "");
    EXPECT_EQ(refused("gpt2", "megatron_fsdp", R"("reduce_dtype": "bf16")"), "");
}

TEST(MegatronRefuses, ToOffloadAnythingButAdamOfTheDistributedOptimizer) {
    const std::string keys = R"("zero_stage": 1, "offload_optimizer": "cpu")";
    EXPECT_EQ(refused("gpt2", "megatron", keys), "");
    EXPECT_EQ(refused("gpt2", "megatron", keys + R"(, "optimizer": "sgd")"), "/training/optimizer");
    const std::string narrow =
        R"(, "megatron": {"use_precision_aware_optimizer": true, "exp_avg_dtype": "bf16"})";
    EXPECT_TRUE(warns(plan_of("gpt2", "megatron", keys + narrow), "no_effect", "exp_avg_dtype"));
    EXPECT_FALSE(warns(plan_of("gpt2", "megatron", keys), "no_effect", "exp_avg_dtype"));
}

TEST(MegatronWarns, OfWhatHasNoEffectOnDenseModels) {
    const Plan plan = plan_of("gpt2", "megatron", R"("tensor_parallel": 2, "expert_tensor_parallel": 1,
                              "moe": {"capacity_factor": 1}, "fp8": {"recipe": "mxfp8"})");
    EXPECT_TRUE(warns(plan, "no_effect", "expert_tensor_parallel = 1"));
    EXPECT_TRUE(warns(plan, "no_effect", "moe = "));
    EXPECT_TRUE(warns(plan, "fp8_recipe", "mxfp8"));
    EXPECT_FALSE(warns(plan_of("gpt2", "megatron", R"("tensor_parallel": 2)"), "no_effect", ""));
}

TEST(MegatronOverlapsTensorParallelism, UnderEitherName) {
    const char* parallel = R"("tensor_parallel": 2, "sequence_parallel": true, )";
    const auto under = [&](const std::string& name) {
        return plan_of("gpt2", "megatron", parallel + name).programs;
    };
    EXPECT_EQ(under(R"("async_tensor_parallel": true)"), under(R"("megatron": {"tp_comm_overlap": true})"));
    EXPECT_NE(under(R"("async_tensor_parallel": true)"), under(R"("megatron": {"tp_comm_overlap": false})"));
    EXPECT_EQ(refused("gpt2", "megatron", parallel + std::string(R"("async_tensor_parallel": true,
                                                "megatron": {"tp_comm_overlap": false})")),
              "/training/async_tensor_parallel");
}

TEST(MegatronModelChunks, HaveNoEffectOnOneStage) {
    const Plan one = plan_of("gpt2", "megatron", ""),
               two = plan_of("gpt2", "megatron", R"("virtual_pipeline": 2)");
    EXPECT_EQ(one.programs, two.programs);
    EXPECT_TRUE(warns(two, "no_effect", "virtual_pipeline = 2"));
}

// Messages that nothing overlaps stand on the stream that computes; one chunk a stage never overlaps them.
TEST(MegatronMessages, OverlapInInterleavedSchedulesUnlessForbidden) {
    const auto with = [](const std::string& chunks, const char* overlap) {
        return plan_of("gpt2", "megatron",
                       R"("pipeline_parallel": 4, "gradient_accumulation_steps": 4, )" + chunks +
                           R"("megatron": {"overlap_p2p_comm": )" + overlap + "}");
    };
    const auto beside = [](const Plan& plan) {
        std::size_t count = 0;
        for (const Section& section : plan.programs[0].step)
            for (const Operation& operation : section.operations)
                if (const auto* t = std::get_if<Transfer>(&operation.body); t != nullptr && t->send)
                    count += operation.stream == Stream::exchange ? 1 : 0;
        return count;
    };
    const std::string three = R"("virtual_pipeline": 3, )";
    EXPECT_GT(beside(with(three, "true")), 0U);
    EXPECT_EQ(beside(with(three, "false")), 0U);
    EXPECT_EQ(beside(with("", "true")), 0U);
    EXPECT_TRUE(warns(with("", "true"), "no_effect", "overlap_p2p_comm"));
    EXPECT_FALSE(warns(with("", "false"), "no_effect", "overlap_p2p_comm"));
    EXPECT_GE(closed_form_steps(with(three, "false")).front().step_time_s,
              closed_form_steps(with(three, "true")).front().step_time_s);
    // megatron/training/arguments.py, validate_args
    EXPECT_EQ(refused("gpt2", "megatron",
                      R"("pipeline_parallel": 2, "virtual_pipeline": 2, "gradient_accumulation_steps": 4,
                                             "megatron": {"overlap_p2p_comm": false})"),
              "/training/megatron/overlap_p2p_comm");
}

TEST(MegatronBucketSize, HasTwoNames) {
    const auto with = [](const std::string& keys) {
        return plan_of("gpt2", "megatron",
                       R"("zero_stage": 1, "megatron": {"overlap_grad_reduce": true, )" + keys + "}")
            .programs;
    };
    EXPECT_EQ(with(R"("bucket_size": 5000000)"), with(R"("ddp_bucket_size": 5000000)"));
    EXPECT_EQ(with(R"("bucket_size": 5000000)"),
              with(R"("bucket_size": 5000000, "ddp_bucket_size": 5000000)"));
    EXPECT_NE(with(R"("bucket_size": 5000000)"), with(R"("bucket_size": 20000000)"));
    EXPECT_EQ(refused("gpt2", "megatron", R"("megatron": {"bucket_size": 1, "ddp_bucket_size": 2})"),
              "/training/megatron/bucket_size");
}

TEST(LlmCRefuses, WhatItHasnt) {
    constexpr Refusal refusals[] = {
        {R"("compute_dtype": "fp8")", "/training/compute_dtype"},
        {R"("parameter_dtype": "fp32")", "/training/parameter_dtype"},
        {R"("gradient_dtype": "fp32")", "/training/gradient_dtype"},
        {R"("reduce_dtype": "fp32")", "/training/reduce_dtype"},
        {R"("optimizer_state_dtype": "bf16")", "/training/optimizer_state_dtype"},
        {R"("adapter": {"kind": "lora", "rank": 16, "targets": "all_linear"})", "/training/adapter"},
        {R"("freeze": ["*"])", "/training/freeze"},
        {R"("offload_optimizer": "cpu")", "/training/offload_optimizer"},
        {R"("offload_parameters": "cpu")", "/training/offload_parameters"},
        {R"("offload_activations": "cpu")", "/training/offload_activations"},
        {R"("offload_gradients": "cpu")", "/training/offload_gradients"},
        {R"("recompute": "selective_op")", "/training/recompute"},
        {R"("recompute": "selective_layer")", "/training/recompute"},
        {R"("recompute_modules": ["mlp"])", "/training/recompute_modules"},
        {R"("optimizer": "lion")", "/training/optimizer"},
        {R"("optimizer_implementation": "foreach")", "/training/optimizer_implementation"},
        {R"("tensor_parallel": 2)", "/training/tensor_parallel"},
        {R"("pipeline_parallel": 2)", "/training/pipeline_parallel"},
        {R"("kernels": "compiled")", "/training/kernels"},
        {R"("loss": "chunked")", "/training/loss"},
        {R"("attention": "sdpa")", "/training/attention"},
        {R"("moe": {"capacity_factor": 1})", "/training/moe"},
        {R"("fp8": {"recipe": "delayed"})", "/training/fp8"},
    };
    EXPECT_EQ(refused("gpt2", "llm_c", ""), "");
    for (const Refusal& refusal : refusals)
        EXPECT_EQ(refused("gpt2", "llm_c", refusal.keys), refusal.place) << refusal.keys;
}

// Nothing of them moves on its own: DeepSpeed's go with the optimizer, FSDP's with the parameters.
TEST(OffloadedGradients, GoWithWhatIsSteppedThere) {
    const char* alone = R"("offload_gradients": "cpu")";
    for (const char* engine : {"fsdp1", "fsdp2", "ddp", "ddp_zero_optimizer"})
        EXPECT_EQ(refused("gpt2", engine, alone), "/training/offload_gradients") << engine;
    EXPECT_EQ(refused("gpt2", "deepspeed", R"("zero_stage": 3, "offload_gradients": "cpu")"),
              "/training/offload_gradients");
    EXPECT_EQ(refused("gpt2", "deepspeed", R"("zero_stage": 3, "offload_gradients": "cpu",
                                              "offload_optimizer": "cpu")"),
              "");
    EXPECT_EQ(refused("gpt2", "fsdp2", R"("offload_gradients": "cpu", "offload_parameters": "cpu")"), "");
}

}  // namespace
}  // namespace zeroplan
