#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json/error_of.hpp"
#include "training_input.hpp"

namespace zeroplan {
namespace {

using testing::HasSubstr;
using enum DType;
using enum EngineKind;

TrainingInput input_of(EngineKind engine, DType compute = bf16) {
    TrainingInput input;
    input.config.engine = engine;
    input.config.compute_dtype = compute;
    input.place = {"s.json", "/training"};
    return input;
}

struct Row {
    EngineKind engine;
    std::uint32_t stage;
    DType parameter;
    std::optional<DType> master;
    DType gradient, reduce;
    Kernels kernels;
};

// The tables of the project's rules: which stage and which dtypes an engine takes when nothing is said.
constexpr Row table[] = {
    {native, 0, fp16, fp32, fp16, fp16, Kernels::fused},
    {llm_c, 0, fp16, fp32, fp16, fp16, Kernels::fused},
    {deepspeed, 0, fp16, fp32, fp16, fp16, Kernels::eager},
    {single, 0, fp32, std::nullopt, fp32, fp32, Kernels::eager},
    {ddp, 0, fp32, std::nullopt, fp32, fp32, Kernels::eager},
    {ddp_zero_optimizer, 1, fp32, std::nullopt, fp32, fp32, Kernels::eager},
    {fsdp1, 3, fp32, std::nullopt, fp32, fp32, Kernels::eager},
    {fsdp2, 3, fp32, std::nullopt, fp32, fp32, Kernels::eager},
    {megatron, 0, fp16, fp32, fp32, fp32, Kernels::fused},
    {megatron_fsdp, 3, fp16, fp32, fp32, fp32, Kernels::fused},
};

TEST(EngineDefaults, AreThoseOfTheTable) {
    for (const Row& row : table) {
        const TrainingConfig config = with_engine_defaults(input_of(row.engine, fp16));
        EXPECT_EQ(config.zero_stage, row.stage) << to_string(row.engine);
        EXPECT_EQ(config.parameter_dtype, row.parameter) << to_string(row.engine);
        EXPECT_EQ(config.master_dtype, row.master) << to_string(row.engine);
        EXPECT_EQ(config.gradient_dtype, row.gradient) << to_string(row.engine);
        EXPECT_EQ(config.reduce_dtype, row.reduce) << to_string(row.engine);
        EXPECT_EQ(config.kernels, row.kernels) << to_string(row.engine);
    }
}

TEST(EngineDefaults, KeepEverythingInFp32WithoutMasterForFp32) {
    for (const Row& row : table)
        for (const DType compute : {fp32, tf32}) {
            const TrainingConfig config = with_engine_defaults(input_of(row.engine, compute));
            EXPECT_EQ(config.parameter_dtype, fp32);
            EXPECT_EQ(config.gradient_dtype, fp32);
            EXPECT_EQ(config.reduce_dtype, fp32);
            EXPECT_EQ(config.master_dtype, std::nullopt);
        }
}

TEST(EngineDefaults, StoreBf16UnderFp8) {
    EXPECT_EQ(with_engine_defaults(input_of(native, fp8)).parameter_dtype, bf16);
}

TEST(EngineDefaults, LetReductionFollowTheGradients) {
    TrainingInput input = input_of(native);
    input.gradient_dtype = fp32;
    EXPECT_EQ(with_engine_defaults(input).reduce_dtype, fp32);
    input = input_of(deepspeed);
    input.own.gradient_dtype = fp32;
    EXPECT_EQ(with_engine_defaults(input).gradient_dtype, fp32);
    EXPECT_EQ(with_engine_defaults(input).reduce_dtype, bf16);
}

TEST(EngineDefaults, RefuseAStageTheEngineHasNot) {
    for (const auto& [engine, stage] : {std::pair{ddp, 1U},
                                        {ddp_zero_optimizer, 0U},
                                        {fsdp1, 1U},
                                        {fsdp2, 0U},
                                        {megatron, 2U},
                                        {llm_c, 3U},
                                        {single, 3U}}) {
        TrainingInput input = input_of(engine);
        input.zero_stage = stage;
        const Error error = error_of([&] { with_engine_defaults(input); });
        EXPECT_EQ(error.place(), (ErrorPlace{"s.json", "/training/zero_stage"}));
        EXPECT_THAT(error.message(), HasSubstr(std::string(to_string(engine))));
    }
}

TEST(EngineDefaults, RefuseAStageThatContradictsTheEnginesObject) {
    TrainingInput input = input_of(deepspeed);
    input.own.zero_stage = 2;
    input.own.zero_stage_key = "deepspeed.zero_optimization.stage";
    EXPECT_EQ(with_engine_defaults(input).zero_stage, 2U);
    input.zero_stage = 3;
    EXPECT_EQ(error_of([&] { with_engine_defaults(input); }).message(),
              "zero_stage is 3, but deepspeed.zero_optimization.stage means stage 2");
}

TEST(EngineDefaults, SynchroniseGradientsByStage) {
    for (const std::uint32_t stage : {0U, 1U, 2U, 3U}) {
        TrainingInput input = input_of(native);
        input.zero_stage = stage;
        EXPECT_EQ(with_engine_defaults(input).fsdp.gradient_sync,
                  stage < 2 ? GradientSync::last : GradientSync::always);
    }
    EXPECT_EQ(with_engine_defaults(input_of(fsdp2)).fsdp.gradient_sync, std::nullopt);
}

TEST(EngineDefaults, InterleaveVirtualStages) {
    TrainingInput input = input_of(megatron);
    EXPECT_EQ(with_engine_defaults(input).pipeline_schedule, PipelineSchedule::one_f_one_b);
    input.config.virtual_pipeline = 2;
    EXPECT_EQ(with_engine_defaults(input).pipeline_schedule, PipelineSchedule::interleaved);
    input.pipeline_schedule = PipelineSchedule::gpipe;
    EXPECT_THROW(with_engine_defaults(input), Error);
}

TEST(CheckComputeDtype, NamesGpuAndDtypeAndTheWayOut) {
    GpuSpec v100;
    v100.name = "v100-sxm-32gb";
    v100.fp32_flop_per_s = 15.7e12;
    v100.fp16_flop_per_s = 125e12;
    const TrainingConfig config = with_engine_defaults(input_of(native));
    const Error error = error_of([&] { check_compute_dtype(config, v100, {"s.json", "/training"}); });
    EXPECT_EQ(error.message(), "GPU v100-sxm-32gb has no bf16 arithmetic, but compute_dtype is bf16");
    EXPECT_THAT(error.hint(), HasSubstr("--dtype fp16"));
    EXPECT_EQ(error.place().pointer, "/training/compute_dtype");
    EXPECT_NO_THROW(check_compute_dtype(with_engine_defaults(input_of(native, fp16)), v100, {}));
    EXPECT_NO_THROW(check_compute_dtype(with_engine_defaults(input_of(native, fp32)), v100, {}));
}

}  // namespace
}  // namespace zeroplan
