#include <gtest/gtest.h>

#include <algorithm>

#include "core/engines/megatron_scenarios.hpp"
#include "core/engines/program_messages.hpp"
#include "zeroplan/collective_cost.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {
namespace {

/// Vocabulary 512 and hidden 64.
constexpr std::uint64_t embedding = 512 * 64;

/// An operation of a step, sections one after another.
struct Place {
    std::size_t position = 0;
    const Operation* operation = nullptr;
};

template <typename Wanted>
std::vector<Place> find(const StepProgram& program, Wanted wanted) {
    std::vector<Place> found;
    std::size_t position = 0;
    for (const Section& section : program.step)
        for (const Operation& operation : section.operations) {
            if (wanted(operation)) found.push_back({position, &operation});
            ++position;
        }
    return found;
}

std::vector<Place> collectives(const StepProgram& program, GroupKind group) {
    return find(program, [group](const Operation& operation) {
        const auto* c = std::get_if<Collective>(&operation.body);
        return c != nullptr && c->group == group;
    });
}

std::vector<Place> optimizer_steps(const StepProgram& program) {
    return find(program, [](const Operation& operation) {
        return std::holds_alternative<OptimizerStep>(operation.body);
    });
}

std::uint64_t tied_reductions(const Plan& plan, std::uint32_t program) {
    return collectives(plan.programs[program], GroupKind::embedding_group).size();
}

/// The one all-reduce of a stage's copy. Fails where there is none, or more.
Collective tied_reduction(const Plan& plan, std::uint32_t program) {
    const std::vector<Place> found = collectives(plan.programs[program], GroupKind::embedding_group);
    EXPECT_EQ(found.size(), 1U) << program;
    return found.empty() ? Collective{} : std::get<Collective>(found.front().operation->body);
}

TEST(TiedEmbedding, FirstAndLastStageReduceTheirCopiesOnceAStep) {
    for (const std::uint64_t chunks : {1U, 2U}) {
        const Plan plan =
            make_plan(megatron_scenario("gpt", {.pipeline = 4, .chunks = chunks, .micro_batches = 8}));
        ASSERT_EQ(plan.programs.size(), 4U);
        for (const std::uint32_t stage : {0U, 3U}) {
            const Collective reduction = tied_reduction(plan, stage);
            EXPECT_EQ(reduction.kind, CollectiveKind::all_reduce);
            EXPECT_EQ(reduction.elements, embedding);
            EXPECT_EQ(reduction.dtype, DType::fp32);  // main_grad
            EXPECT_EQ(reduction.send, reduction.receive);
            EXPECT_EQ(layout_of(plan, stage).units[reduction.unit].name,
                      stage == 0 ? "embedding.word_embeddings.weight" : "output_layer.weight");
        }
        EXPECT_EQ(tied_reductions(plan, 1) + tied_reductions(plan, 2), 0U);
    }
}

TEST(TiedEmbedding, NeedsTwoStagesAndATie) {
    EXPECT_EQ(tied_reductions(make_plan(megatron_scenario("gpt", {.data = 2})), 0), 0U);
    const Plan untied = make_plan(megatron_scenario("gpt", {.pipeline = 2, .tied = false}));
    EXPECT_EQ(tied_reductions(untied, 0) + tied_reductions(untied, 1), 0U);
}

TEST(TiedEmbedding, TensorParallelRanksReduceTheirRows) {
    const Plan plan = make_plan(megatron_scenario("gpt", {.tensor = 2, .pipeline = 2}));
    EXPECT_EQ(tied_reduction(plan, 0).elements, embedding / 2);
    EXPECT_EQ(tied_reduction(plan, 1).elements, embedding / 2);
}

// grad_reduce_in_bf16.
TEST(TiedEmbedding, IsReducedInTheDtypeOfTheGradientBuffer) {
    Scenario scenario = megatron_scenario("gpt", {.pipeline = 2});
    scenario.training.gradient_dtype = scenario.training.reduce_dtype = DType::bf16;
    EXPECT_EQ(tied_reduction(make_plan(scenario), 0).dtype, DType::bf16);
}

/// What is reduced over data-parallel ranks comes before the embedding, the optimizer behind it.
void expect_between_reductions_and_step(const Plan& plan, std::uint32_t program, GroupKind data) {
    const StepProgram& steps = plan.programs[program];
    const std::vector<Place> embedding_place = collectives(steps, GroupKind::embedding_group);
    ASSERT_EQ(embedding_place.size(), 1U);
    std::vector<Place> reductions = collectives(steps, data);
    std::erase_if(reductions, [](const Place& place) {
        return std::get<Collective>(place.operation->body).kind == CollectiveKind::all_gather;
    });
    ASSERT_FALSE(reductions.empty());
    const std::vector<Place> stepped = optimizer_steps(steps);
    ASSERT_FALSE(stepped.empty());
    EXPECT_LT(reductions.back().position, embedding_place.front().position);
    EXPECT_LT(embedding_place.front().position, stepped.front().position);
    EXPECT_EQ(embedding_place.front().operation->stream, reductions.back().operation->stream);
}

// finalize_model_grads: every chunk's finish_grad_sync, the embedding, then the optimizer.
TEST(TiedEmbedding, MegatronReducesItBehindAllOtherGradients) {
    for (const char* options : {R"({})", R"({"overlap_grad_reduce": true, "ddp_bucket_size": 100000})"})
        for (const std::uint32_t zero_stage : {0U, 1U})
            for (const std::uint64_t chunks : {1U, 2U}) {
                const Plan plan = make_plan(megatron_scenario("gpt", {.pipeline = 2,
                                                                      .chunks = chunks,
                                                                      .data = 2,
                                                                      .zero_stage = zero_stage,
                                                                      .micro_batches = 4,
                                                                      .megatron_json = options}));
                const GroupKind data = zero_stage == 0 ? GroupKind::replica_group : GroupKind::shard_group;
                for (const std::uint32_t stage : {0U, 1U})
                    expect_between_reductions_and_step(plan, stage, data);
                // The whole weight, be the other gradients scattered.
                EXPECT_EQ(tied_reduction(plan, 0).elements, embedding);
            }
}

TEST(TiedEmbedding, ExpertsAreReducedBeforeItToo) {
    const Plan plan =
        make_plan(megatron_scenario("deepseek", {.pipeline = 2, .data = 4, .expert = 2, .zero_stage = 1}));
    expect_between_reductions_and_step(plan, 0, GroupKind::shard_group);
    expect_between_reductions_and_step(plan, 0, GroupKind::expert_data_group);
}

TEST(TiedEmbedding, MegatronLm2021Reduces16BitGradients) {
    const Plan plan = make_plan(megatron_scenario(
        "gpt", {.pipeline = 2, .data = 2, .compute = DType::fp16, .engine_version = "megatron-lm 2021"}));
    EXPECT_EQ(tied_reduction(plan, 1).dtype, DType::fp16);
    expect_between_reductions_and_step(plan, 1, GroupKind::replica_group);
}

/// Where a parameter stands in the only chunk's gradient buffer of a stage.
std::uint64_t offset_of(const Plan& plan, std::uint32_t stage, const std::string& name) {
    const ModelSpec& model = model_of(plan, stage);
    for (const UnitLayout& unit : layout_of(plan, stage).units)
        if (unit.name == "buffer 0")
            for (const PlacedParameter& placed : unit.parameters)
                if (model.parameters[placed.parameter].name == name) return placed.offset;
    ADD_FAILURE() << name;
    return 0;
}

// Three ranks share the optimizer: buckets end at multiples of lcm(3, 128) = 384, parameters at those of 64.
// The weight's 32,768 elements become 86 · 384 = 33,024, a third of which each rank owns on both stages.
TEST(TiedEmbedding, MegatronCutsBothCopiesAlike) {
    MegatronCase wanted{.pipeline = 2, .data = 3, .zero_stage = 1};
    const Plan tied = make_plan(megatron_scenario("gpt", wanted));
    EXPECT_EQ(offset_of(tied, 0, "embedding.word_embeddings.weight") % 384, 0U);
    EXPECT_EQ(offset_of(tied, 1, "output_layer.weight"), 0U);
    const std::string behind = "decoder.final_layernorm.bias";
    EXPECT_EQ(offset_of(tied, 1, behind), 33024U);
    wanted.tied = false;
    EXPECT_EQ(offset_of(make_plan(megatron_scenario("gpt", wanted)), 1, behind), embedding);
}

TEST(TiedEmbedding, CountsAsTwiceHalfTheBufferSent) {
    const Plan plan = make_plan(megatron_scenario("gpt", {.pipeline = 2}));
    const CommunicationVolume& volume = plan.communication.at("all_reduce");
    EXPECT_EQ(volume.operations, 2U);  // and the gradients' own, of one replica
    EXPECT_EQ(volume.bytes_per_rank, Bytes{embedding * 4});
}

// --- DeepSpeed's pipeline

struct DeepSpeedMode {
    const char* name;
    std::uint32_t zero_stage;
    DType parameters, gradients;
    GroupKind data;  ///< group of the reduction of all gradients
};

Scenario deepspeed_pipeline(const DeepSpeedMode& mode) {
    Scenario scenario = megatron_scenario("gpt", {.pipeline = 3, .data = 2, .micro_batches = 4});
    scenario.model.layers = 6;
    TrainingConfig& training = scenario.training;
    training.pipeline_layout = {3, 2, 3};
    training.engine = EngineKind::deepspeed;
    training.zero_stage = mode.zero_stage;
    training.shard_group = mode.zero_stage == 0 ? 1 : 2;
    training.compute_dtype = training.parameter_dtype = mode.parameters;
    training.gradient_dtype = mode.gradients;
    training.reduce_dtype = mode.parameters;
    training.master_dtype = DType::fp32;
    return scenario;
}

class DeepSpeedTiedEmbedding : public testing::TestWithParam<DeepSpeedMode> {};

// TrainSchedule: ReduceTiedGrads, ReduceGrads, OptimizerStep. BF16_Optimizer: _hp_grad, else param.grad.
TEST_P(DeepSpeedTiedEmbedding, IsReducedBeforeAllOtherGradients) {
    const Plan plan = make_plan(deepspeed_pipeline(GetParam()));
    std::uint64_t stages = 0;
    for (const RankGroup& group : plan.rank_groups) {
        const std::uint64_t stage = group.ranks.front().first / 2;
        const StepProgram& program = plan.programs[group.program];
        if (stage == 1) {
            EXPECT_EQ(tied_reductions(plan, group.program), 0U);
            continue;
        }
        ++stages;
        const Collective reduction = tied_reduction(plan, group.program);
        EXPECT_EQ(reduction.elements, embedding);
        EXPECT_EQ(reduction.dtype, GetParam().gradients);
        const std::size_t at = collectives(program, GroupKind::embedding_group).front().position;
        const std::vector<Place> others = collectives(program, GetParam().data);
        ASSERT_FALSE(others.empty());
        EXPECT_LT(at, others.front().position);
        EXPECT_LT(others.front().position, optimizer_steps(program).front().position);
        // Behind the last micro-batch's backward.
        const std::vector<Place> computed = find(program, [](const Operation& operation) {
            return std::holds_alternative<Compute>(operation.body);
        });
        EXPECT_LT(computed.back().position, at);
    }
    EXPECT_GE(stages, 2U);
}

INSTANTIATE_TEST_SUITE_P(
    Wrappers, DeepSpeedTiedEmbedding,
    testing::Values(DeepSpeedMode{"bf16_stage_1", 1, DType::bf16, DType::fp32, GroupKind::shard_group},
                    DeepSpeedMode{"bf16_stage_0", 0, DType::bf16, DType::fp32, GroupKind::shard_group},
                    DeepSpeedMode{"fp16_stage_1", 1, DType::fp16, DType::fp16, GroupKind::shard_group},
                    DeepSpeedMode{"fp16_stage_0", 0, DType::fp16, DType::fp16, GroupKind::replica_group}),
    [](const auto& mode) { return std::string(mode.param.name); });

TEST(TiedEmbedding, DeepSpeedsStage1LeavesWideGradientsAlone) {
    const Plan plan =
        make_plan(deepspeed_pipeline({"fp16_stage_1", 1, DType::fp16, DType::fp32, GroupKind::shard_group}));
    for (std::uint32_t p = 0; p < plan.programs.size(); ++p) EXPECT_EQ(tied_reductions(plan, p), 0U);
}

double communicators(const Plan& plan) {
    for (const Constant& constant : plan.constants)
        if (constant.name == "nccl_communicators") return constant.value;
    return 0;
}

// World, data parallel, all of one replica, and the embedding's.
TEST(TiedEmbedding, DeepSpeedKeepsACommunicatorForIt) {
    Scenario scenario = deepspeed_pipeline({"bf16", 1, DType::bf16, DType::fp32, GroupKind::shard_group});
    EXPECT_EQ(communicators(make_plan(scenario)), 4);
    scenario.model.decoder->tie_word_embeddings = false;
    EXPECT_EQ(communicators(make_plan(scenario)), 3);
}

// --- Megatron-FSDP

// A rank's share of the weight, in the dtype that the optimizer reads: the last stage's copy has a bucket of
// its own, too, so that both stages cut it alike.
TEST(TiedEmbedding, MegatronFsdpReducesTheOwnShare) {
    for (const std::uint32_t zero_stage : {0U, 1U, 2U, 3U}) {
        Scenario scenario = megatron_scenario(
            "gpt", {.pipeline = 2, .data = 4, .zero_stage = zero_stage, .micro_batches = 4});
        scenario.training.engine = EngineKind::megatron_fsdp;
        const Plan plan = make_plan(scenario);
        for (const std::uint32_t stage : {0U, 1U}) {
            const Collective reduction = tied_reduction(plan, stage);
            EXPECT_EQ(reduction.elements, zero_stage == 0 ? embedding : embedding / 4) << zero_stage;
            EXPECT_EQ(reduction.dtype, DType::fp32);
            expect_between_reductions_and_step(
                plan, stage, zero_stage == 0 ? GroupKind::replica_group : GroupKind::shard_group);
            const std::vector<UnitLayout>& units = layout_of(plan, stage).units;
            const auto alone = std::count_if(units.begin(), units.end(), [](const UnitLayout& unit) {
                return unit.name == "rest of chunk 0" && unit.numel == embedding;
            });
            EXPECT_EQ(alone, zero_stage == 0 ? 0 : 1) << zero_stage << ' ' << stage;
        }
    }
}

}  // namespace
}  // namespace zeroplan
