#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "core/architectures/decoder_configs.hpp"
#include "core/engines/program_hazards.hpp"
#include "engines/engine.hpp"
#include "engines/native_layout.hpp"
#include "zeroplan/build_model.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {
namespace {

GpuSpec large_gpu() {
    return {.name = "test",
            .memory_usable = Bytes{1ULL << 40},
            .bf16_flop_per_s = 1e15,
            .compute_capability = 90};
}

Scenario scenario_of(ModelSpec model, std::uint32_t stage, std::uint64_t ranks, DType compute = DType::bf16) {
    Scenario scenario{.model = std::move(model)};
    TrainingConfig& training = scenario.training;
    training.zero_stage = stage;
    training.data_parallel = ranks;
    training.shard_group = stage == 0 ? 1 : ranks;
    training.compute_dtype = training.parameter_dtype = training.gradient_dtype = training.reduce_dtype =
        compute;
    training.master_dtype = is_16_bit(compute) ? std::optional(DType::fp32) : std::nullopt;
    training.optimizer = Optimizer::adam;
    scenario.cluster.gpu = large_gpu();
    scenario.cluster.gpus_used = ranks;
    return scenario;
}

ModelSpec square_stack(std::uint64_t width, std::uint64_t layers, bool bias = true) {
    return build_plain_stack(
        "stack", std::vector<StackLayer>(layers, {width, width, bias, ActivationFunction::none}), "mse");
}

Bytes model_states(const Plan& plan) {
    const CategoryBytes& at_peak = plan.rank_groups[0].steady.at_peak;
    return at_peak[Category::parameters] + at_peak[Category::gradients] + at_peak[Category::master_weights] +
           at_peak[Category::optimizer_states];
}

TEST(NativeLayout, PadsAUnitToEightElementsARank) {
    const ModelSpec model = square_stack(100, 2);
    const ShardLayout layout = native_layout(model, 4);
    ASSERT_EQ(layout.units.size(), 2U);
    EXPECT_EQ(layout.units[0].numel, 10100U);
    EXPECT_EQ(layout.units[0].padded_numel, 10112U);
    EXPECT_EQ(layout.slice(0, 3), (ElementRange{7584, 10112}));
}

TEST(NativeLayout, SlicesCoverEveryElementOnce) {
    const ModelSpec model = build_llama(small_llama(true, 1), {});
    for (const std::uint64_t ranks : {1ULL, 2ULL, 3ULL, 7ULL, 64ULL, 1000ULL}) {
        const ShardLayout layout = native_layout(model, ranks);
        std::uint64_t placed = 0;
        for (std::uint32_t u = 0; u < layout.units.size(); ++u) {
            std::uint64_t next = 0;
            for (std::uint64_t r = 0; r < ranks; ++r) {
                EXPECT_EQ(layout.slice(u, r).begin, next);
                next = layout.slice(u, r).end;
            }
            EXPECT_EQ(next, layout.units[u].padded_numel);
            for (const PlacedParameter& p : layout.units[u].parameters)
                placed += model.parameters[p.parameter].numel;
        }
        EXPECT_EQ(placed, model.parameter_count()) << ranks;
    }
}

TEST(NativeLayout, ATiedWeightBelongsToItsFirstUser) {
    const ShardLayout layout = native_layout(build_llama(small_llama(true, 1), {}), 2);
    EXPECT_EQ(layout.units.back().also_gathers, std::vector<std::uint32_t>{0});
    EXPECT_TRUE(native_layout(build_llama(small_llama(false, 1), {}), 2).units.back().also_gathers.empty());
}

// Rajbhandari et al. 2020, figure 1: 7.5 billion parameters on 64 GPUs, 16-bit training with Adam.
TEST(Native, ModelStatesAreThoseOfTheZeroPaper) {
    const ModelSpec model = square_stack(50000, 3, false);
    ASSERT_EQ(model.parameter_count(), 7'500'000'000U);
    const double expected[] = {120e9, 31.40625e9, 16.640625e9, 1.875e9};
    for (std::uint32_t stage = 0; stage <= 3; ++stage) {
        const Plan plan = make_plan(scenario_of(model, stage, 64));
        EXPECT_NEAR(static_cast<double>(model_states(plan).count()), expected[stage], 1e5)
            << "stage " << stage;
        const double resident = static_cast<double>(plan.rank_groups[0].resident.count());
        EXPECT_NEAR(resident, expected[stage] + (32 << 20), 1e5)
            << "stage " << stage;  // and the matrix workspace
    }
}

TEST(Native, IngredientsSumToThePeakAndShardsToTheWhole) {
    for (std::uint32_t stage = 0; stage <= 3; ++stage) {
        for (const std::uint64_t ranks : {1ULL, 2ULL, 8ULL, 16384ULL}) {
            const Plan plan = make_plan(scenario_of(build_llama(small_llama(false, 1), {}), stage, ranks));
            ASSERT_EQ(plan.rank_groups.size(), 1U);
            const MemoryPeak& peak = plan.rank_groups[0].steady;
            EXPECT_EQ(peak.at_peak.total(), peak.allocated);
            Bytes live;
            for (const BufferId id : peak.live) live += allocated_bytes(plan.programs[0].buffers[id]);
            EXPECT_EQ(live, peak.allocated);
            EXPECT_GE(plan.rank_groups[0].peak_reserved, peak.allocated);
        }
    }
}

// Where the ranks divide the parameters; else padding of up to 8 elements a rank comes on top.
TEST(Native, MoreRanksNeverNeedMoreModelState) {
    for (std::uint32_t stage = 1; stage <= 3; ++stage) {
        Bytes before{~0ULL};
        for (std::uint64_t ranks = 1; ranks <= 1024; ranks *= 2) {
            const Bytes now =
                model_states(make_plan(scenario_of(square_stack(1024, 4, false), stage, ranks)));
            EXPECT_LE(now, before) << "stage " << stage << ", " << ranks << " ranks";
            before = now;
        }
    }
}

struct ProgramCase {
    std::uint32_t stage;
    std::uint64_t micro_batches;
    std::optional<GradientSync> sync;
    Recompute recompute;
    bool tied;
    AttentionKernel attention;
};

class NativeProgramTest : public testing::TestWithParam<ProgramCase> {};

TEST_P(NativeProgramTest, HasNoHazards) {
    const ProgramCase& c = GetParam();
    const LoweringOptions lowering{.attention = c.attention};
    for (const bool replicas : {false, true}) {
        Scenario scenario = scenario_of(build_llama(small_llama(c.tied, 1), lowering), c.stage, 8);
        scenario.training.gradient_accumulation_steps = c.micro_batches;
        scenario.training.fsdp.gradient_sync = c.sync;
        scenario.training.recompute = c.recompute;
        scenario.training.attention = c.attention;
        scenario.training.sequence_length = 128;
        if (replicas && c.stage > 0) scenario.training.shard_group = 4;
        const EngineOutput output = native_engine(scenario);
        EXPECT_EQ(hazards(output.programs[0]), std::vector<std::string>{});
    }
}

/// Ties the parameter named `user` to the earlier one named `owner`.
void tie(ModelSpec& model, const std::string& owner, const std::string& user) {
    const auto index = [&](const std::string& name) {
        for (std::uint32_t i = 0; i < model.parameters.size(); ++i)
            if (model.parameters[i].name == name) return i;
        throw std::out_of_range(name);
    };
    model.parameters[index(user)].shared_with = index(owner);
}

TEST(NativeGradients, HaveABufferForEachUnitThatOneBackwardWritesInto) {
    ModelSpec model = build_llama(small_llama(false, 1), {});
    tie(model, "model.layers.0.input_layernorm.weight", "model.layers.2.input_layernorm.weight");
    tie(model, "model.layers.1.post_attention_layernorm.weight",
        "model.layers.2.post_attention_layernorm.weight");
    for (const std::uint32_t stage : {2U, 3U}) {
        Scenario scenario = scenario_of(model, stage, 8);
        scenario.training.sequence_length = 128;
        const StepProgram program = native_engine(scenario).programs[0];
        EXPECT_EQ(hazards(program), std::vector<std::string>{});
        // Layer 2's backward writes into layers 0, 1 and 2; before that and after it two are enough.
        std::size_t live = 0, most = 0;
        for (const Operation& operation : program.step[0].operations) {
            const auto bucket = [&](BufferId id) {
                return program.buffers[id].role == BufferRole::gradient_bucket;
            };
            if (const auto* made = std::get_if<Allocate>(&operation.body)) live += bucket(made->buffer);
            if (const auto* freed = std::get_if<Free>(&operation.body); freed && bucket(freed->buffer)) {
                --live;
                EXPECT_FALSE(operation.waits.empty()) << "freed before it was reduced, stage " << stage;
            }
            most = std::max(most, live);
        }
        EXPECT_EQ(most, 3U) << "stage " << stage;
    }
}

TEST(Hazards, AreFoundWhenAnEventIsForgotten) {
    for (std::uint32_t stage = 0; stage <= 3; ++stage) {
        StepProgram program =
            native_engine(scenario_of(build_llama(small_llama(false, 1), {}), stage, 8)).programs[0];
        for (Section& section : program.step)
            for (Operation& operation : section.operations)
                if (!std::holds_alternative<Free>(operation.body)) operation.waits.clear();
        EXPECT_FALSE(hazards(program).empty()) << "stage " << stage;
    }
}

std::vector<ProgramCase> program_cases() {
    std::vector<ProgramCase> cases;
    for (std::uint32_t stage = 0; stage <= 3; ++stage)
        for (const std::uint64_t micro_batches : {1ULL, 3ULL})
            for (const auto sync : {std::optional<GradientSync>{}, std::optional(GradientSync::always),
                                    std::optional(GradientSync::last)})
                for (const Recompute recompute :
                     {Recompute::none, Recompute::selective, Recompute::selective_layer, Recompute::full})
                    for (const bool tied : {false, true})
                        for (const AttentionKernel attention :
                             {AttentionKernel::flash, AttentionKernel::eager})
                            cases.push_back({stage, micro_batches, sync, recompute, tied, attention});
    return cases;
}

INSTANTIATE_TEST_SUITE_P(EveryMode, NativeProgramTest, testing::ValuesIn(program_cases()));

TEST(Native, RecomputeSavesActivationsInOrder) {
    std::vector<Bytes> activations;
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        Scenario scenario =
            scenario_of(build_llama(small_llama(false, 1), {.attention = AttentionKernel::eager}), 2, 8);
        scenario.training.recompute = recompute;
        scenario.training.attention = AttentionKernel::eager;
        scenario.training.sequence_length = 128;
        activations.push_back(make_plan(scenario).rank_groups[0].steady.at_peak[Category::activations]);
    }
    EXPECT_GT(activations[0], activations[1]);
    EXPECT_GT(activations[1], activations[2]);
}

// One stack of three 64x64 linears, micro-batch 8, fp32, SGD, two ranks: every buffer by hand.
TEST(Native, PeakOfAPlainStackByHand) {
    Scenario scenario = scenario_of(square_stack(64, 3), 0, 2, DType::fp32);
    scenario.training.optimizer = Optimizer::sgd;
    scenario.training.micro_batch_size = 8;
    scenario.cluster.gpu.is_host = true;
    const std::uint64_t unit = 4 * (64 * 64 + 64), activation = 4 * 8 * 64;
    const Plan whole = make_plan(scenario);
    const CategoryBytes& at_peak = whole.rank_groups[0].steady.at_peak;
    EXPECT_EQ(at_peak[Category::parameters], Bytes{3 * round_up(unit, 512)});
    EXPECT_EQ(at_peak[Category::gradients], Bytes{3 * round_up(unit, 512)});
    EXPECT_EQ(at_peak[Category::temporaries], Bytes{0});
    // input, three outputs, the last one's gradient: the loss itself is a number of 4 bytes, 512 in the arena
    EXPECT_GE(at_peak[Category::activations], Bytes{5 * activation});
    EXPECT_LE(at_peak[Category::activations], Bytes{5 * activation + 512});

    scenario.training.zero_stage = 3;
    scenario.training.shard_group = 2;
    const Plan sharded = make_plan(scenario);
    const CategoryBytes& at_peak3 = sharded.rank_groups[0].steady.at_peak;
    EXPECT_EQ(at_peak3[Category::parameters], Bytes{3 * round_up(unit / 2, 512)});
    EXPECT_EQ(at_peak3[Category::gathered_parameters],
              Bytes{2 * round_up(unit, 512)});  // in use and prefetched
}

TEST(Native, RefusesWhatItDoesNotDoByName) {
    Scenario scenario = scenario_of(square_stack(64, 2), 1, 4);
    scenario.training.tensor_parallel = 2;
    try {
        make_plan(scenario);
        FAIL() << "accepted tensor parallelism";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_supported);
        EXPECT_EQ(error.place().pointer, "/training/tensor_parallel");
        EXPECT_NE(error.message().find("= 2"), std::string::npos);
    }
    scenario.training.tensor_parallel = 1;
    scenario.training.optimizer = Optimizer::adafactor;
    EXPECT_THROW(make_plan(scenario), Error);
}

TEST(Native, RefusesKeysThatWouldChangeNothing) {
    const auto refused_pointer = [](auto change) -> std::string {
        Scenario scenario = scenario_of(square_stack(64, 2), 1, 4);
        change(scenario.training);
        try {
            make_plan(scenario);
        } catch (const Error& error) {
            return error.place().pointer;
        }
        return "accepted";
    };
    EXPECT_EQ(refused_pointer([](TrainingConfig& t) {
                  t.optimizer_implementation = OptimizerImplementation::in_backward;
              }),
              "/training/optimizer_implementation");
    EXPECT_EQ(refused_pointer([](TrainingConfig& t) { t.async_tensor_parallel = true; }),
              "/training/async_tensor_parallel");
    EXPECT_EQ(refused_pointer([](TrainingConfig& t) { t.expert_tensor_parallel = 2; }),
              "/training/expert_tensor_parallel");
}

TEST(Native, WarnsOfAVersionThatItsRulesAreNot) {
    Scenario scenario = scenario_of(square_stack(64, 2), 1, 4);
    EXPECT_TRUE(run_engine(scenario).warnings.empty());
    scenario.training.engine_version = "native 1";
    EXPECT_TRUE(run_engine(scenario).warnings.empty());
    scenario.training.engine_version = "native 2";
    const std::vector<Warning> warnings = run_engine(scenario).warnings;
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0].code, "engine_version");
    EXPECT_NE(warnings[0].message.find("'native 2'"), std::string::npos);
}

}  // namespace
}  // namespace zeroplan
