#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json/error_of.hpp"
#include "training_input.hpp"

namespace zeroplan {
namespace {

using testing::HasSubstr;

/// A job on two nodes of eight GPUs.
struct Job {
    Job() {
        input.place = {"s.json", "/training"};
        cluster.nodes = 2;
        cluster.gpus_used = 16;
        model.name = "m";
        model.layers = 8;
        model.max_sequence_length = 1024;
    }
    TrainingConfig fit() const { return fitted(with_engine_defaults(input), input, model, cluster); }
    Error error() const {
        return error_of([this] { fit(); });
    }

    TrainingInput input;
    ModelSpec model;
    ClusterSpec cluster;
};

TEST(Fitted, TakesTheRanksLeftOver) {
    Job job;
    job.input.zero_stage = 3;
    job.input.config.tensor_parallel = 2;
    job.input.config.context_parallel = 2;
    const TrainingConfig config = job.fit();
    EXPECT_EQ(config.data_parallel, 4U);
    EXPECT_EQ(config.shard_group, 8U);  // data_parallel × context_parallel
    EXPECT_EQ(config.expert_tensor_parallel, 2U);
    EXPECT_EQ(config.sequence_length, 1024U);
}

TEST(Fitted, ShardsNothingAtStageZero) {
    Job job;
    EXPECT_EQ(job.fit().shard_group, 1U);
    job.input.shard_group = 4;
    EXPECT_EQ(job.error().place().pointer, "/training/shard_group");
}

TEST(Fitted, NamesAllFiveNumbersAndTheFactorThatWorks) {
    Job job;
    job.input.data_parallel = 4;
    job.input.config.tensor_parallel = 2;
    const Error error = job.error();
    EXPECT_EQ(error.place(), (ErrorPlace{"s.json", "/training/data_parallel"}));
    EXPECT_EQ(error.message(),
              "data_parallel 4 × tensor_parallel 2 × pipeline_parallel 1 × context_parallel 1 = 8 ranks, but "
              "there are "
              "16 GPUs in use (2 nodes × 8)");
    EXPECT_THAT(error.hint(), HasSubstr("data_parallel 8 would fit"));
    EXPECT_THAT(error.hint(), HasSubstr("use 8 GPUs"));
}

TEST(Fitted, RefusesDegreesThatDoNotDivide) {
    Job job;
    job.input.config.tensor_parallel = 3;
    const Error error = job.error();
    EXPECT_EQ(error.place().pointer, "/training/tensor_parallel");
    EXPECT_THAT(error.message(), HasSubstr("= 3 ranks don't divide the 16 GPUs"));
    EXPECT_THAT(error.hint(), HasSubstr("18 GPUs"));
}

TEST(Fitted, RefusesGroupsThatDoNotDivide) {
    Job job;
    job.input.zero_stage = 3;
    job.input.shard_group = 6;
    EXPECT_EQ(job.error().message(), "shard_group 6 doesn't divide data_parallel × context_parallel = 16");
    EXPECT_THAT(job.error().hint(), HasSubstr("the nearest that does is 4"));
    job.input.shard_group = 8;
    job.input.config.secondary_shard_group = 16;
    EXPECT_EQ(job.error().place().pointer, "/training/secondary_shard_group");
    job.input.config.secondary_shard_group = 8;
    EXPECT_EQ(job.fit().shard_group, 8U);
    job.input.config.expert_parallel = 5;
    EXPECT_EQ(job.error().place().pointer, "/training/expert_parallel");
}

TEST(Fitted, ChecksTheLayersOfEachStage) {
    Job job;
    job.input.config.pipeline_parallel = 4;
    job.input.config.pipeline_layout = {2, 2, 4};
    EXPECT_THAT(job.error().message(), HasSubstr("3 entries"));
    job.input.config.pipeline_layout = {2, 2, 2, 3};
    EXPECT_THAT(job.error().message(), HasSubstr("places 9 layers, but the model has 8"));
    job.input.config.pipeline_layout = {3, 2, 2, 1};
    EXPECT_NO_THROW(job.fit());
}

TEST(Fitted, RefusesTokensWithoutALearnedPosition) {
    Job job;
    job.input.sequence_length = 2048;
    EXPECT_EQ(job.fit().sequence_length, 2048U);  // rotary
    job.model.parameters.push_back({.name = "transformer.wpe.weight", .shape = {1024, 8}, .numel = 8192});
    EXPECT_THAT(job.error().message(),
                HasSubstr("sequence_length is 2048, but model m has 1024 learned positions"));
}

TEST(Fitted, CatchesOverflow) {
    Job job;
    job.input.config.tensor_parallel = job.input.config.pipeline_parallel = 1ULL << 40;
    EXPECT_EQ(job.error().code(), ErrorCode::overflow);
}

TEST(Fitted, AnInterleavedScheduleTakesWholeRounds) {
    Job job;
    job.input.config.engine = EngineKind::megatron;
    job.input.config.pipeline_parallel = 4;
    job.input.config.virtual_pipeline = 2;
    job.input.config.gradient_accumulation_steps = 6;
    EXPECT_THAT(job.error().message(), HasSubstr("6 micro-batches are no multiple of pipeline_parallel 4"));
    EXPECT_EQ(job.error().place().pointer, "/training/gradient_accumulation_steps");
    EXPECT_THAT(job.error().hint(), HasSubstr("use 4 or 8 micro-batches"));
    job.input.config.gradient_accumulation_steps = 8;
    EXPECT_NO_THROW(job.fit());
}

}  // namespace
}  // namespace zeroplan
