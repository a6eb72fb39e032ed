#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "core/engines/program_hazards.hpp"
#include "core/engines/torch_scenarios.hpp"
#include "engines/deepspeed_host.hpp"
#include "engines/deepspeed_options.hpp"
#include "engines/engine.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t llama_parameters = 6'738'415'616, workspaces = 2 * (32ULL << 20);

Scenario deepspeed(ModelSpec model, std::uint64_t ranks, std::uint32_t stage, DType dtype = DType::bf16) {
    Scenario scenario = torch_scenario(EngineKind::deepspeed, std::move(model), ranks, stage);
    TrainingConfig& training = scenario.training;
    training.shard_group = stage == 0 ? 1 : ranks;
    training.compute_dtype = training.parameter_dtype = training.gradient_dtype = training.reduce_dtype =
        dtype;
    training.master_dtype = DType::fp32;
    scenario.cluster.gpus_per_node = 8;
    scenario.cluster.host.memory = Bytes{1ULL << 50};
    return scenario;
}

Scenario llama(std::uint64_t ranks, std::uint32_t stage, DType dtype = DType::bf16) {
    return deepspeed(build_llama(llama_2_7b_config(), torch_lowering()), ranks, stage, dtype);
}

std::uint64_t resident_bytes(const Plan& plan, Category category) {
    const StepProgram& program = plan.programs.front();
    std::uint64_t bytes = 0;
    for (const BufferId id : resident_buffers(program))
        if (program.buffers[id].category == category)
            bytes += program.buffers[id].elements * bytes_per_element(program.buffers[id].dtype);
    return bytes;
}

/// Bytes of all buffers of a role and dtype that are ever allocated in a step; the largest one.
std::uint64_t largest(const StepProgram& program, BufferRole role) {
    std::uint64_t most = 0;
    for (const Section& section : program.step)
        for (const Operation& operation : section.operations)
            if (const auto* a = std::get_if<Allocate>(&operation.body))
                if (program.buffers[a->buffer].role == role)
                    most = std::max(most, program.buffers[a->buffer].elements *
                                              bytes_per_element(program.buffers[a->buffer].dtype));
    return most;
}

std::uint64_t allocations(const StepProgram& program, BufferRole role) {
    std::uint64_t count = 0;
    for (const Section& section : program.step)
        for (const Operation& operation : section.operations)
            if (const auto* a = std::get_if<Allocate>(&operation.body))
                count += program.buffers[a->buffer].role == role ? 1U : 0U;
    return count;
}

struct Mode {
    const char* name;
    std::uint32_t stage;
    DType dtype;
    void (*change)(TrainingConfig&);
};

void as_it_is(TrainingConfig&) {}
void accumulate(TrainingConfig& t) {
    t.gradient_accumulation_steps = 4;
}

const Mode modes[] = {
    {"stage0", 0, DType::fp16, as_it_is},
    {"stage0_fp32", 0, DType::fp32, accumulate},
    {"stage0_accumulating", 0, DType::bf16, accumulate},
    {"bf16_optimizer", 1, DType::bf16,
     [](TrainingConfig& t) {
         t.gradient_dtype = DType::fp32;
         t.gradient_accumulation_steps = 2;
     }},
    {"stage1", 1, DType::bf16, as_it_is},
    {"stage1_accumulating", 1, DType::fp16, accumulate},
    {"stage1_wide", 1, DType::fp16,
     [](TrainingConfig& t) {
         t.gradient_dtype = DType::fp32;
         t.gradient_accumulation_steps = 3;
     }},
    {"stage1_overlap", 1, DType::bf16,
     [](TrainingConfig& t) {
         t.deepspeed_json = R"({"zero_optimization": {"overlap_comm": true, "reduce_bucket_size": 20000}})";
         t.gradient_accumulation_steps = 3;
     }},
    {"stage2", 2, DType::bf16, as_it_is},
    {"stage2_accumulating", 2, DType::fp16, accumulate},
    {"stage2_small_buckets", 2, DType::bf16,
     [](TrainingConfig& t) {
         t.deepspeed_json = R"({"zero_optimization": {"reduce_bucket_size": 5000, "overlap_comm": true}})";
     }},
    {"stage2_two_buckets", 2, DType::bf16,
     [](TrainingConfig& t) {
         t.deepspeed_json = R"({"zero_optimization": {"reduce_bucket_size": 20000, "overlap_comm": true}})";
         t.gradient_accumulation_steps = 3;
     }},
    {"stage2_a_reduction_a_rank", 2, DType::bf16,
     [](TrainingConfig& t) {
         t.deepspeed_json = R"({"zero_optimization": {"reduce_bucket_size": 20000, "overlap_comm": true,
             "use_multi_rank_bucket_allreduce": false}})";
     }},
    {"stage2_not_contiguous", 2, DType::bf16,
     [](TrainingConfig& t) {
         t.deepspeed_json = R"({"zero_optimization": {"contiguous_gradients": false}})";
     }},
    {"stage2_not_contiguous_accumulating", 2, DType::bf16,
     [](TrainingConfig& t) {
         t.deepspeed_json = R"({"zero_optimization": {"contiguous_gradients": false, "overlap_comm": true}})";
         t.gradient_accumulation_steps = 3;
     }},
    {"stage1_2021", 1, DType::fp16,
     [](TrainingConfig& t) {
         t.engine_version = "deepspeed 0.5";
         t.gradient_accumulation_steps = 3;
     }},
    {"stage2_offload", 2, DType::bf16, [](TrainingConfig& t) { t.offload_optimizer = OffloadTarget::cpu; }},
    {"stage2_old", 2, DType::fp16, [](TrainingConfig& t) { t.engine_version = "deepspeed 0.5"; }},
    {"stage3", 3, DType::bf16, as_it_is},
    {"stage3_accumulating", 3, DType::bf16, accumulate},
    {"stage3_small", 3, DType::bf16,
     [](TrainingConfig& t) {
         t.deepspeed_json = R"({"zero_optimization": {"reduce_bucket_size": 5000, "sub_group_size": 9000,
             "stage3_prefetch_bucket_size": 9000, "stage3_max_live_parameters": 30000,
             "stage3_max_reuse_distance": 20000, "stage3_param_persistence_threshold": 100}})";
         t.recompute = Recompute::full;
     }},
    {"stage3_no_overlap", 3, DType::bf16,
     [](TrainingConfig& t) { t.deepspeed_json = R"({"zero_optimization": {"overlap_comm": false}})"; }},
    {"stage3_offload", 3, DType::bf16,
     [](TrainingConfig& t) { t.offload_parameters = t.offload_optimizer = OffloadTarget::cpu; }},
    {"stage3_hpz", 3, DType::bf16,
     [](TrainingConfig& t) {
         t.secondary_shard_group = 2;
         t.gradient_accumulation_steps = 3;
         t.deepspeed_json = R"({"zero_optimization": {"stage3_param_persistence_threshold": 100,
             "stage3_prefetch_bucket_size": 0, "stage3_max_reuse_distance": 0}})";
     }},
    {"stage3_quantised", 3, DType::bf16,
     [](TrainingConfig& t) {
         t.deepspeed_json = R"({"zero_optimization": {"zero_quantized_weights": true,
             "zero_quantized_gradients": true, "stage3_param_persistence_threshold": 100}})";
     }},
    {"stage3_mics", 3, DType::bf16,
     [](TrainingConfig& t) {
         t.deepspeed_json = R"({"zero_optimization": {"mics_shard_size": 2,
             "stage3_param_persistence_threshold": 100}})";
     }},
    {"stage3_old", 3, DType::fp16, [](TrainingConfig& t) { t.engine_version = "deepspeed 0.3 (2021)"; }},
};

class DeepSpeedMode : public testing::TestWithParam<std::tuple<Mode, bool, std::uint64_t>> {};

TEST_P(DeepSpeedMode, RunsWithoutRacesOrLeaks) {
    const auto& [mode, tied, ranks] = GetParam();
    Scenario scenario =
        deepspeed(build_llama(small_llama(tied), torch_lowering()), ranks, mode.stage, mode.dtype);
    mode.change(scenario.training);
    for (const StepProgram& program : run_engine(scenario).programs) {
        const auto found = hazards(program);
        EXPECT_TRUE(found.empty()) << found.front();
    }
    EXPECT_GT(make_plan(scenario).memory.overall_peak_device, Bytes{});
}

INSTANTIATE_TEST_SUITE_P(Modes, DeepSpeedMode,
                         testing::Combine(testing::ValuesIn(modes), testing::Bool(), testing::Values(4U, 6U)),
                         [](const auto& mode) {
                             return fmt::format("{}_{}_{}", std::get<0>(mode.param).name,
                                                std::get<1>(mode.param) ? "tied" : "untied",
                                                std::get<2>(mode.param));
                         });

TEST(DeepSpeedStage0, KeepsParametersMasterAndStatesWhole) {
    const Plan plan = make_plan(llama(8, 0, DType::fp16));
    EXPECT_EQ(plan.rank_groups.front().resident.count(), 14 * llama_parameters + 512 + workspaces);
}

TEST(DeepSpeedStage0, WidensEveryGradientBeforeItJoinsThem) {
    // 2 + 4 + 8 bytes stay; gradients in 16 bit, each in fp32 and all of them joined are there at once.
    const Plan plan = make_plan(llama(8, 0, DType::fp16));
    EXPECT_GE(plan.rank_groups.front().steady.allocated.count(), 24 * llama_parameters);
    EXPECT_LT(plan.rank_groups.front().steady.allocated.count(), 25 * llama_parameters);
}

TEST(DeepSpeedBf16Optimizer, KeepsAllGradientsInFp32) {
    Scenario scenario = llama(8, 1);
    scenario.training.gradient_dtype = DType::fp32;
    const Plan plan = make_plan(scenario);
    EXPECT_EQ(resident_bytes(plan, Category::parameters), 2 * llama_parameters);
    EXPECT_EQ(resident_bytes(plan, Category::gradients), 4 * llama_parameters);
    EXPECT_EQ(resident_bytes(plan, Category::master_weights), 4 * llama_parameters / 8);
    EXPECT_EQ(resident_bytes(plan, Category::optimizer_states), 8 * llama_parameters / 8 + 4);
}

TEST(DeepSpeedStage2, ShardsMasterAndStatesAndFreesTheRest) {
    const Plan plan = make_plan(llama(8, 2));
    EXPECT_EQ(resident_bytes(plan, Category::parameters), 2 * llama_parameters);
    EXPECT_EQ(resident_bytes(plan, Category::master_weights), 842'301'952ULL * 4);
    EXPECT_EQ(resident_bytes(plan, Category::optimizer_states), 842'301'952ULL * 8 + 4);
    EXPECT_EQ(resident_bytes(plan, Category::gradients), 0U);
    EXPECT_EQ(resident_bytes(plan, Category::communication_buffers), 0U);
}

TEST(DeepSpeedStage2, TakesTheBucketAtTheFirstGradient) {
    const Plan plan = make_plan(llama(8, 2));
    EXPECT_EQ(largest(plan.programs.front(), BufferRole::gradient_bucket), 1'000'000'000U);
    Scenario overlapping = llama(8, 2);
    overlapping.training.deepspeed_json =
        R"({"zero_optimization": {"overlap_comm": true, "use_multi_rank_bucket_allreduce": false}})";
    EXPECT_EQ(allocations(make_plan(overlapping).programs.front(), BufferRole::gradient_bucket), 2U);
}

TEST(DeepSpeedStage2, CopiesWholeGradientsToTheRanksTheyOverlap) {
    // An ideal share of 64 is 105,287,744 elements; the second rank has the embedding's end and layer 0's
    // start.
    const EngineOutput output = run_engine(llama(64, 2));
    std::uint64_t most = 0;
    for (const StepProgram& program : output.programs)
        most = std::max(most, largest(program, BufferRole::gradients) / 2);
    EXPECT_EQ(most, 243'269'632U);
}

TEST(DeepSpeedStage1, TakesNoBucketsFrom04To012) {
    // DeepSpeed issue 1302 (2021): stage 2 took more than stage 1, by the bucket of 5e8 elements.
    const auto bucket = [](std::uint32_t stage, const char* version) {
        Scenario scenario = deepspeed(build_llama(small_llama(), torch_lowering()), 4, stage, DType::fp16);
        scenario.training.engine_version = version;
        return make_plan(scenario)
            .rank_groups.front()
            .steady.at_peak[Category::communication_buffers]
            .count();
    };
    EXPECT_LT(bucket(1, "deepspeed 0.5"), 1'000'000U);
    EXPECT_GE(bucket(2, "deepspeed 0.5"), 1'000'000'000U);
    EXPECT_GE(bucket(1, ""), 1'000'000'000U);
}

TEST(DeepSpeedOldBuckets, WereFourAndAHalfTimesTheSize) {
    // DeepSpeed issue 467: 5e8 elements in fp16 with overlap took 2 · 4.5 · 5e8 · 2 B = 9 GB, 2e8 took 3.6
    // GB.
    for (const auto& [elements, bytes] :
         {std::pair{500'000'000ULL, 9'000'000'000ULL}, {200'000'000ULL, 3'600'000'000ULL}}) {
        Scenario scenario = llama(8, 2, DType::fp16);
        scenario.training.engine_version = "deepspeed 0.3";
        scenario.training.deepspeed_json = fmt::format(
            R"({{"zero_optimization": {{"overlap_comm": true, "reduce_bucket_size": {}}}}})", elements);
        const StepProgram program = run_engine(scenario).programs.front();
        EXPECT_EQ(
            allocations(program, BufferRole::gradient_bucket) * largest(program, BufferRole::gradient_bucket),
            bytes);
    }
}

TEST(DeepSpeedStage3, KeepsShardsGradientsAndTheBucket) {
    const Plan plan = make_plan(llama(8, 3));
    EXPECT_EQ(resident_bytes(plan, Category::parameters), 842'301'952ULL * 2);
    EXPECT_EQ(resident_bytes(plan, Category::gradients), 842'301'952ULL * 2);
    EXPECT_EQ(resident_bytes(plan, Category::master_weights), 842'301'952ULL * 4);
    EXPECT_EQ(resident_bytes(plan, Category::gathered_parameters), 266'240U * 2);
    EXPECT_EQ(resident_bytes(plan, Category::communication_buffers), 1'000'000'000U);
}

TEST(DeepSpeedStage3, KeepsASecondShardWithHpz) {
    // 8 of 16 ranks: an eighth of every parameter that a module has released, until the step.
    Scenario scenario = llama(16, 3);
    scenario.training.secondary_shard_group = 8;
    scenario.training.deepspeed_json =
        R"({"zero_optimization": {"stage3_prefetch_bucket_size": 0, "stage3_max_reuse_distance": 0}})";
    const StepProgram program = run_engine(scenario).programs.front();
    std::uint64_t bytes = 0;
    for (const Section& section : program.step)
        for (const Operation& operation : section.operations)
            if (const auto* a = std::get_if<Allocate>(&operation.body))
                if (program.buffers[a->buffer].role == BufferRole::parameters)
                    bytes += 2 * program.buffers[a->buffer].elements;
    EXPECT_EQ(bytes, 2 * (llama_parameters - 266'240) / 8);
}

/// Elements of a step's gathers in `group`.
std::uint64_t gathered_in(const StepProgram& program, GroupKind group) {
    std::uint64_t elements = 0;
    for (const Section& section : program.step)
        for (const Operation& operation : section.operations)
            if (const auto* c = std::get_if<Collective>(&operation.body))
                if (c->kind == CollectiveKind::all_gather && c->group == group)
                    elements += section.repeat * c->elements;
    return elements;
}

TEST(DeepSpeedStage3, GathersInsideTheSecondaryGroupFromBackwardOn) {
    Scenario scenario = llama(16, 3);
    scenario.training.deepspeed_json =
        R"({"zero_optimization": {"stage3_prefetch_bucket_size": 0, "stage3_max_reuse_distance": 0}})";
    constexpr std::uint64_t gathered = llama_parameters - 266'240;  // the rest is persistent
    const StepProgram without = run_engine(scenario).programs.front();
    EXPECT_EQ(gathered_in(without, GroupKind::shard_group), 2 * gathered);
    scenario.training.secondary_shard_group = 8;
    const StepProgram with = run_engine(scenario).programs.front();
    EXPECT_EQ(gathered_in(with, GroupKind::shard_group), gathered);
    EXPECT_EQ(gathered_in(with, GroupKind::secondary_shard_group), gathered);
    // Only the first forward of a step crosses the nodes.
    scenario.training.gradient_accumulation_steps = 3;
    const StepProgram several = run_engine(scenario).programs.front();
    EXPECT_EQ(gathered_in(several, GroupKind::shard_group), gathered);
    EXPECT_EQ(gathered_in(several, GroupKind::secondary_shard_group), 5 * gathered);
}

TEST(DeepSpeedStage3, GathersAModuleAtATimeWhereAskedToWhenItSaves) {
    Scenario scenario = llama(8, 3);
    EXPECT_TRUE(run_engine(scenario).programs.front().save.operations.empty());
    scenario.training.deepspeed_json =
        R"({"zero_optimization": {"stage3_gather_16bit_weights_on_model_save": true}})";
    const StepProgram program = run_engine(scenario).programs.front();
    std::uint64_t live = 0, most = 0, all = 0;
    for (const Operation& operation : program.save.operations) {
        if (const auto* a = std::get_if<Allocate>(&operation.body)) {
            live += program.buffers[a->buffer].elements;
            all += program.buffers[a->buffer].elements;
        }
        if (const auto* f = std::get_if<Free>(&operation.body)) live -= program.buffers[f->buffer].elements;
        most = std::max(most, live);
    }
    EXPECT_EQ(most, 131'072'000U);  // the embedding, or the output layer
    EXPECT_EQ(all, llama_parameters - 266'240);
    EXPECT_EQ(live, 0U);
    EXPECT_EQ(hazards(program), std::vector<std::string>{});
}

/// Highest bytes of the phase "load" on the device.
std::uint64_t load_peak(const Plan& plan) {
    for (const PhaseMemory& phase : plan.rank_groups[0].phases)
        if (phase.phase == Phase::load) return phase.peak_allocated.count();
    return 0;
}

TEST(DeepSpeedStage3, HoldsTheWholeModelFirstWithoutZeroInit) {
    Scenario scenario = llama(8, 3);
    const Plan with = make_plan(scenario);
    scenario.training.deepspeed_json = R"({"zero_init": false})";
    const Plan without = make_plan(scenario);
    // 2 bytes a parameter on every GPU, and a shard of the first one before that goes.
    EXPECT_GE(load_peak(without), 2 * llama_parameters);
    EXPECT_LE(load_peak(without), 2 * llama_parameters + 2 * 131'072'000 / 8 + 64 * (1U << 20));
    EXPECT_LE(load_peak(with), 2 * llama_parameters / 8 + 2 * 131'072'000 + 64 * (1U << 20));
    EXPECT_EQ(with.rank_groups[0].steady.allocated, without.rank_groups[0].steady.allocated);
    const auto on_host = [](const Plan& plan) {
        for (const PhaseMemory& phase : plan.rank_groups[0].phases)
            if (phase.phase == Phase::load) return phase.host_per_node.count();
        return std::uint64_t{0};
    };
    EXPECT_EQ(on_host(with), 0U);
    EXPECT_GE(on_host(without), 2 * llama_parameters);
}

TEST(DeepSpeedHost, HoldsMasterGradientsAndMomentsOfThePartition) {
    Scenario scenario = llama(8, 2);
    scenario.training.offload_optimizer = OffloadTarget::cpu;
    scenario.training.deepspeed_json =
        R"({"zero_optimization": {"offload_optimizer": {"device": "cpu", "pin_memory": false}}})";
    const Plan plan = make_plan(scenario);
    // 4 + 4 + 2 bytes a partition's element and a 16-bit buffer for the largest parameter; moments 8.
    const std::uint64_t rank = 18ULL * 842'301'952 + 2ULL * 131'072'000;
    const PhaseMemory& steady = plan.rank_groups.front().phases[static_cast<std::size_t>(Phase::steady_step)];
    EXPECT_EQ(steady.host_per_node.count(), 8 * rank);
    // Without a master 2 bytes less of the partition, and of its gradients.
    scenario.training.master_dtype = std::nullopt;
    const Plan narrow = make_plan(scenario);
    EXPECT_EQ(narrow.rank_groups.front().phases[static_cast<std::size_t>(Phase::steady_step)].host_per_node,
              Bytes{8 * (rank - 4ULL * 842'301'952)});
    scenario.training.master_dtype = DType::fp32;
    // A pinned master partition of 3.14 GiB takes 4 GiB.
    scenario.training.deepspeed_json.clear();
    const std::uint64_t pinned = 2 * (4ULL << 30) + (2ULL << 30) + (256ULL << 20);
    EXPECT_EQ(make_plan(scenario)
                  .rank_groups.front()
                  .phases[static_cast<std::size_t>(Phase::steady_step)]
                  .host_per_node.count(),
              8 * (pinned + 8ULL * 842'301'952));
}

TEST(DeepSpeedHost, DecidesWhetherTrainingFits) {
    Scenario scenario = llama(8, 3);
    scenario.training.offload_optimizer = scenario.training.offload_parameters = OffloadTarget::cpu;
    EXPECT_EQ(make_plan(scenario).memory.verdict, Verdict::fits);
    scenario.cluster.host.memory = Bytes{64ULL << 30};
    EXPECT_EQ(make_plan(scenario).memory.verdict, Verdict::does_not_fit);
}

TEST(DeepSpeedOptions, ReadWhatPeopleWrite) {
    Scenario scenario = llama(8, 3);
    scenario.training.deepspeed_json = R"({"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto",
        "sub_group_size": 1e9, "overlap_comm": false}})";
    const DeepSpeedOptions options = read_deepspeed_options(scenario);
    EXPECT_EQ(options.reduce_bucket_size, 16'777'216U);
    EXPECT_EQ(options.prefetch_bucket_size, 15'099'494U);
    EXPECT_EQ(options.param_persistence_threshold, 40'960U);
    EXPECT_EQ(options.sub_group_size, 1'000'000'000U);
    EXPECT_FALSE(options.overlap_comm);
}

TEST(DeepSpeedOptions, OverlapByDefaultAtStage3Alone) {
    EXPECT_TRUE(read_deepspeed_options(llama(8, 3)).overlap_comm);
    EXPECT_FALSE(read_deepspeed_options(llama(8, 2)).overlap_comm);
}

TEST(DeepSpeedOptions, RefuseAKeyThatIsNone) {
    Scenario scenario = llama(8, 2);
    scenario.training.deepspeed_json = R"({"zero_optimization": {"reduce_buckets_size": 5}})";
    try {
        run_engine(scenario);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.place().pointer, "/training/deepspeed/zero_optimization/reduce_buckets_size");
    }
}

TEST(DeepSpeedOptions, ReadTheVersion) {
    Scenario scenario = llama(8, 2);
    scenario.training.engine_version = "deepspeed 0.5-0.6, Megatron-DeepSpeed 2022";
    EXPECT_EQ(read_deepspeed_options(scenario).version, (DeepSpeedVersion{0, 5}));
    EXPECT_TRUE(read_deepspeed_options(scenario).rules.states_at_init);
    scenario.training.engine_version.clear();
    EXPECT_FALSE(read_deepspeed_options(scenario).rules.states_at_init);
}

TEST(DeepSpeedChecks, PipelineTakesStagesZeroAndOneAlone) {
    Scenario scenario = llama(8, 2);
    scenario.training.pipeline_parallel = 2;
    EXPECT_THROW(run_engine(scenario), Error);
}

TEST(DeepSpeedRanks, ArePlannedTogetherWithAWarningOnly) {
    const auto warned = [](const Plan& plan) {
        return std::any_of(plan.warnings.begin(), plan.warnings.end(),
                           [](const Warning& warning) { return warning.code == "ranks_planned_together"; });
    };
    // Two ranks, two ways to cut; 64 ranks cut 291 parameters in more than the 8 that are planned.
    const Plan two = make_plan(llama(2, 2));
    EXPECT_LE(two.programs.size(), 2U);
    EXPECT_FALSE(warned(two));
    const Plan many = make_plan(llama(64, 2));
    EXPECT_LE(many.programs.size(), 8U);
    EXPECT_TRUE(warned(many));
    EXPECT_FALSE(warned(make_plan(llama(64, 3))));
}

}  // namespace
}  // namespace zeroplan
