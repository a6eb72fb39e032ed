#include "engines/megatron_model.hpp"

#include <gtest/gtest.h>

#include "core/engines/megatron_scenarios.hpp"
#include "engines/megatron_context.hpp"

namespace zeroplan {
namespace {

std::uint64_t parameters_of_stage(const Scenario& scenario, std::uint64_t stage) {
    const auto chunks = stage_chunks(scenario.training, scenario.model.layers, stage);
    return megatron_stage_model(scenario, {}, chunks).model.parameter_count();
}

/// Parameters that every tensor-parallel rank holds whole: norms, biases of row-parallel linears, positions.
std::uint64_t replicated_parameters(const ModelSpec& model) {
    std::uint64_t sum = 0;
    for (const Parameter& p : model.parameters) {
        const bool norm = p.name.find("layernorm") != std::string::npos ||
                          p.name.find("down_proj") != std::string::npos || p.name.ends_with("router.weight");
        const bool row_bias = p.name.ends_with("linear_proj.bias") || p.name.ends_with("linear_fc2.bias");
        if (norm || row_bias || p.name.ends_with("position_embeddings.weight")) sum += p.numel;
    }
    return sum;
}

TEST(StageChunks, SplitsLayersEvenlyOverVirtualStages) {
    TrainingConfig training;
    training.pipeline_parallel = 4;
    training.virtual_pipeline = 3;
    const std::vector<StageChunk> chunks = stage_chunks(training, 24, 3);
    ASSERT_EQ(chunks.size(), 3U);
    EXPECT_EQ(chunks[0], (StageChunk{6, 2, false, false}));
    EXPECT_EQ(chunks[2], (StageChunk{22, 2, false, true}));
}

TEST(StageChunks, FollowsAPipelineLayout) {
    TrainingConfig training;
    training.pipeline_parallel = 3;
    training.pipeline_layout = {2, 5, 0};
    EXPECT_EQ(stage_chunks(training, 7, 1)[0], (StageChunk{2, 5, false, false}));
    EXPECT_EQ(stage_chunks(training, 7, 2)[0], (StageChunk{7, 0, false, true}));
}

TEST(StageChunks, RefusesLayersThatDoNotDivide) {
    TrainingConfig training;
    training.pipeline_parallel = 5;
    EXPECT_THROW(stage_chunks(training, 12, 0), Error);
}

TEST(MegatronModel, OneRankHoldsTheWholeModel) {
    for (const char* family : {"gpt", "llama", "deepseek"}) {
        const Scenario scenario = megatron_scenario(family, {});
        EXPECT_EQ(parameters_of_stage(scenario, 0), scenario.model.parameter_count()) << family;
    }
}

TEST(MegatronModel, PipelineStagesSumToTheModel) {
    for (const char* family : {"gpt", "llama", "deepseek"}) {
        const Scenario scenario = megatron_scenario(family, {.pipeline = 4, .chunks = 2, .tied = false});
        std::uint64_t sum = 0;
        for (std::uint64_t stage = 0; stage < 4; ++stage) sum += parameters_of_stage(scenario, stage);
        EXPECT_EQ(sum, scenario.model.parameter_count()) << family;
    }
}

TEST(MegatronModel, TheLastStageHoldsACopyOfATiedEmbedding) {
    const Scenario scenario = megatron_scenario("gpt", {.pipeline = 2, .tied = true});
    EXPECT_EQ(parameters_of_stage(scenario, 0) + parameters_of_stage(scenario, 1),
              scenario.model.parameter_count() + 512ULL * 64);
}

TEST(MegatronModel, KnowsTheCopiesOfATiedEmbedding) {
    const auto copy = [](const Scenario& scenario, std::uint64_t stage) {
        const StageModel part =
            megatron_stage_model(scenario, {}, stage_chunks(scenario.training, scenario.model.layers, stage));
        return part.tied_copy ? part.model.parameters[*part.tied_copy].name : "";
    };
    for (const std::uint64_t chunks : {1U, 2U}) {
        const Scenario tied = megatron_scenario("gpt", {.pipeline = 4, .chunks = chunks, .tied = true});
        EXPECT_EQ(copy(tied, 0), "embedding.word_embeddings.weight");
        EXPECT_EQ(copy(tied, 1), "");
        EXPECT_EQ(copy(tied, 3), "output_layer.weight");
    }
    EXPECT_EQ(copy(megatron_scenario("gpt", {.pipeline = 4, .tied = false}), 0), "");
    EXPECT_EQ(copy(megatron_scenario("gpt", {.tied = true}), 0), "");
}

TEST(MegatronModel, TensorParallelRanksSumToTheModelButForWhatIsReplicated) {
    for (const char* family : {"gpt", "llama", "deepseek"}) {
        for (const std::uint64_t tensor : {2ULL, 4ULL}) {
            const Scenario scenario = megatron_scenario(family, {.tensor = tensor});
            const StageModel rank = megatron_stage_model(scenario, {}, {{0, 8, true, true}});
            const std::uint64_t replicated = replicated_parameters(rank.model);
            EXPECT_EQ(tensor * (rank.model.parameter_count() - replicated) + replicated,
                      scenario.model.parameter_count())
                << family << tensor;
        }
    }
}

/// Bytes that a layer keeps for backward, 16-bit compute.
std::uint64_t saved_bytes(const Scenario& scenario) {
    const StageModel stage = megatron_stage_model(scenario, {}, {{1, 1, false, false}});
    const BlockKind& kind = stage.model.block_kinds[stage.model.blocks[0].kind];
    std::vector<bool> saved(kind.tensors.size(), false);
    for (const Operator& op : kind.operators)
        for (const std::uint32_t tensor : op.saved) saved[tensor] = true;
    std::uint64_t bytes = 0;
    const TrainingConfig& training = scenario.training;
    for (std::size_t t = 0; t < saved.size(); ++t)
        if (saved[t])
            bytes += elements(kind.tensors[t].extent, training.micro_batch_size,
                              training.sequence_length / training.context_parallel) *
                     bytes_per_element(resolve(kind.tensors[t].dtype, DType::bf16));
    return bytes;
}

TEST(MegatronModel, GptLayerKeepsThePapersBytes) {
    // Korthikanti et al.: sbh(34 + 5as/h), and LayerNorm statistics that they leave out (16 B a token).
    const std::uint64_t s = 128, b = 2, h = 64, a = 4;
    const Scenario scenario =
        megatron_scenario("gpt", {.attention = AttentionKernel::eager, .dropout = true});
    EXPECT_EQ(saved_bytes(scenario), 34 * s * b * h + 5 * a * s * s * b + 16 * s * b);
}

TEST(MegatronModel, SequenceParallelismDividesTheWholeLayer) {
    for (const char* family : {"gpt", "llama"}) {
        const auto bytes = [&](std::uint64_t tensor, bool sequence) {
            return saved_bytes(
                megatron_scenario(family, {.tensor = tensor, .sequence = sequence, .dropout = true}));
        };
        EXPECT_EQ(bytes(4, true) * 4, bytes(1, false)) << family;
        EXPECT_GT(bytes(4, false) * 4, bytes(1, false)) << family;
    }
}

TEST(MegatronModel, TensorParallelismAloneLeavesTenBytesOfSbh) {
    // sbh(10 + 24/t): what lies between the tensor-parallel regions stays whole; statistics with it.
    const std::uint64_t s = 128, b = 2, h = 64;
    const Scenario one = megatron_scenario("gpt", {.dropout = true});
    const Scenario four = megatron_scenario("gpt", {.tensor = 4, .dropout = true});
    const std::uint64_t whole = (10 * h + 16) * s * b;
    EXPECT_EQ(4 * (saved_bytes(four) - whole), saved_bytes(one) - whole);
}

TEST(MegatronModel, ContextParallelismDividesTokens) {
    const auto bytes = [](std::uint64_t context) {
        return saved_bytes(megatron_scenario("llama", {.context = context}));
    };
    EXPECT_EQ(bytes(2) * 2, bytes(1));
}

TEST(MegatronModel, ExpertParallelRanksShareTheRoutedExperts) {
    const auto routed = [](std::uint64_t expert) {
        const Scenario scenario = megatron_scenario("deepseek", {.data = 4, .expert = expert});
        const StageModel rank = megatron_stage_model(scenario, {}, {{0, 8, true, true}});
        std::uint64_t sum = 0, rest = 0;
        for (const Parameter& p : rank.model.parameters)
            (p.name.find(".experts.") != std::string::npos ? sum : rest) += p.numel;
        return std::pair(sum, rest);
    };
    EXPECT_EQ(routed(1).first, 7 * 8 * 3 * 32 * 64U);
    EXPECT_EQ(routed(4).first * 4, routed(1).first);
    EXPECT_EQ(routed(4).second, routed(1).second);
}

TEST(MegatronModel, CapacityAndImbalanceSayHowManyTokensExpertsGet) {
    Scenario scenario = megatron_scenario("deepseek", {});
    // 256 tokens, 2 experts each, 8 experts.
    EXPECT_EQ(megatron_context(scenario, {}).routed_tokens(), 512U);
    scenario.training.moe_json = R"({"load_imbalance": 1.5})";
    EXPECT_EQ(megatron_context(scenario, {}).routed_tokens(), 768U);
    scenario.training.moe_json = R"({"capacity_factor": 1.01})";
    EXPECT_EQ(megatron_context(scenario, {}).routed_tokens(), 8 * 65U);
}

TEST(MegatronModel, PadsAVocabularyThatDoesNotDivide) {
    EXPECT_EQ(padded_vocabulary(50257, 1), 50257U);
    EXPECT_EQ(padded_vocabulary(50257, 4), 50688U);
}

TEST(MegatronModel, RefusesHeadsThatDoNotDivide) {
    const Scenario scenario = megatron_scenario("gpt", {.tensor = 3});
    EXPECT_THROW(megatron_stage_model(scenario, {}, {{0, 8, true, true}}), Error);
}

}  // namespace
}  // namespace zeroplan
