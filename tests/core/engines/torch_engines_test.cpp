#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/engines/program_hazards.hpp"
#include "core/engines/torch_scenarios.hpp"
#include "engines/engine.hpp"
#include "engines/zero_redundancy.hpp"
#include "zeroplan/plan.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t llama_2_7b_parameters = 6'738'415'616;

std::string first_hazard(const EngineOutput& output) {
    for (const StepProgram& program : output.programs)
        if (const auto found = hazards(program); !found.empty()) return found.front();
    return "none";
}

/// Elements that buffers of a role hold when a program has run its first step.
std::uint64_t resident_elements(const StepProgram& program, BufferRole role) {
    std::vector<BufferId> live = live_after({&program.load, 1}, {});
    live = live_after({&program.init, 1}, live);
    live = live_after(program.first_step, live);
    std::uint64_t sum = 0;
    for (const BufferId id : live)
        if (program.buffers[id].role == role) sum += program.buffers[id].elements;
    return sum;
}

struct Mode {
    const char* name;
    EngineKind engine;
    std::uint32_t stage;
    void (*change)(TrainingConfig&);
};

void as_it_is(TrainingConfig&) {}

const Mode modes[] = {
    {"single", EngineKind::single, 0, as_it_is},
    {"single_bf16", EngineKind::single, 0,
     [](TrainingConfig& t) { t.parameter_dtype = t.gradient_dtype = t.reduce_dtype = DType::bf16; }},
    {"single_accumulating", EngineKind::single, 0,
     [](TrainingConfig& t) { t.gradient_accumulation_steps = 3; }},
    {"single_in_backward", EngineKind::single, 0,
     [](TrainingConfig& t) {
         t.parameter_dtype = t.gradient_dtype = t.reduce_dtype = DType::bf16;
         t.optimizer_implementation = OptimizerImplementation::in_backward;
     }},
    {"single_offload_activations", EngineKind::single, 0,
     [](TrainingConfig& t) { t.offload_activations = OffloadTarget::cpu; }},
    {"single_offload_checkpoints", EngineKind::single, 0,
     [](TrainingConfig& t) {
         t.offload_activations = OffloadTarget::cpu;
         t.recompute = Recompute::full;
     }},
    {"ddp", EngineKind::ddp, 0, as_it_is},
    {"ddp_accumulating", EngineKind::ddp, 0, [](TrainingConfig& t) { t.gradient_accumulation_steps = 2; }},
    {"zero_optimizer", EngineKind::ddp_zero_optimizer, 1,
     [](TrainingConfig& t) { t.shard_group = t.data_parallel; }},
    {"ddp_compressing", EngineKind::ddp, 0, [](TrainingConfig& t) { t.reduce_dtype = DType::bf16; }},
    {"fsdp1", EngineKind::fsdp1, 3, as_it_is},
    {"fsdp1_accumulating", EngineKind::fsdp1, 3,
     [](TrainingConfig& t) { t.gradient_accumulation_steps = 2; }},
    {"fsdp1_grad_op", EngineKind::fsdp1, 2, as_it_is},
    {"fsdp1_no_shard", EngineKind::fsdp1, 0, as_it_is},
    {"fsdp1_prefetch_post", EngineKind::fsdp1, 3,
     [](TrainingConfig& t) { t.fsdp.backward_prefetch = "post"; }},
    {"fsdp1_bf16_reduce", EngineKind::fsdp1, 3, [](TrainingConfig& t) { t.reduce_dtype = DType::bf16; }},
    {"fsdp1_offload", EngineKind::fsdp1, 3,
     [](TrainingConfig& t) { t.offload_parameters = t.offload_optimizer = OffloadTarget::cpu; }},
    {"fsdp2", EngineKind::fsdp2, 3, as_it_is},
    {"fsdp2_kept", EngineKind::fsdp2, 2, as_it_is},
    {"fsdp2_accumulating", EngineKind::fsdp2, 3,
     [](TrainingConfig& t) { t.gradient_accumulation_steps = 2; }},
    {"fsdp2_second_group", EngineKind::fsdp2, 3, [](TrainingConfig& t) { t.fsdp.reshard_after_forward = 2; }},
    {"fsdp2_hybrid", EngineKind::fsdp2, 3, [](TrainingConfig& t) { t.shard_group = 2; }},
    {"fsdp2_own_units", EngineKind::fsdp2, 3,
     [](TrainingConfig& t) { t.fsdp.wrap = "layer+embedding+output"; }},
    {"fsdp2_root", EngineKind::fsdp2, 3, [](TrainingConfig& t) { t.fsdp.wrap = "root"; }},
    {"fsdp2_offload", EngineKind::fsdp2, 3,
     [](TrainingConfig& t) { t.offload_parameters = t.offload_optimizer = OffloadTarget::cpu; }},
    {"fsdp2_selective_op", EngineKind::fsdp2, 3,
     [](TrainingConfig& t) { t.recompute = Recompute::selective_op; }},
    {"fsdp2_selective_layer", EngineKind::fsdp2, 3,
     [](TrainingConfig& t) {
         t.recompute = Recompute::selective_layer;
         t.recompute_every = 2;
     }},
    {"fsdp2_tensor_parallel", EngineKind::fsdp2, 3, [](TrainingConfig& t) { t.tensor_parallel = 2; }},
    {"fsdp2_sequence_parallel", EngineKind::fsdp2, 3,
     [](TrainingConfig& t) {
         t.tensor_parallel = 2;
         t.sequence_parallel = true;
         t.recompute = Recompute::full;
     }},
    {"fsdp2_context_parallel", EngineKind::fsdp2, 3, [](TrainingConfig& t) { t.context_parallel = 2; }},
    {"fsdp2_pipeline", EngineKind::fsdp2, 2,
     [](TrainingConfig& t) {
         t.pipeline_parallel = 3;
         t.gradient_accumulation_steps = 4;
     }},
    {"fsdp2_pipeline_gathering_again", EngineKind::fsdp2, 3,
     [](TrainingConfig& t) {
         t.pipeline_parallel = 3;
         t.pipeline_schedule = PipelineSchedule::gpipe;
         t.gradient_accumulation_steps = 2;
         t.recompute = Recompute::full;
     }},
    {"fsdp2_interleaved", EngineKind::fsdp2, 2,
     [](TrainingConfig& t) {
         t.pipeline_parallel = 2;
         t.virtual_pipeline = 2;
         t.pipeline_schedule = PipelineSchedule::interleaved;
         t.pipeline_layout = {1, 1, 1, 0};
         t.gradient_accumulation_steps = 4;
     }},
    {"fsdp2_reducing_last", EngineKind::fsdp2, 3,
     [](TrainingConfig& t) {
         t.fsdp.gradient_sync = GradientSync::last;
         t.gradient_accumulation_steps = 3;
     }},
    {"fsdp2_full", EngineKind::fsdp2, 3, [](TrainingConfig& t) { t.recompute = Recompute::full; }},
    {"fsdp2_foreach", EngineKind::fsdp2, 3,
     [](TrainingConfig& t) { t.optimizer_implementation = OptimizerImplementation::foreach; }},
};

class TorchEngine : public testing::TestWithParam<std::tuple<Mode, bool, std::uint64_t>> {};

TEST_P(TorchEngine, RunsWithoutRacesOrLeaks) {
    const auto& [mode, tied, ranks] = GetParam();
    for (const Kernels kernels : {Kernels::eager, Kernels::compiled}) {
        Scenario scenario =
            torch_scenario(mode.engine, build_llama(small_llama(tied), torch_lowering(kernels)),
                           mode.engine == EngineKind::single ? 1 : ranks, mode.stage);
        scenario.training.kernels = kernels;
        mode.change(scenario.training);
        EXPECT_EQ(first_hazard(run_engine(scenario)), "none") << mode.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, TorchEngine,
                         testing::Combine(testing::ValuesIn(modes), testing::Bool(), testing::Values(4U, 6U)),
                         [](const auto& mode) {
                             return fmt::format("{}_{}_{}", std::get<0>(mode.param).name,
                                                std::get<1>(mode.param) ? "tied" : "untied",
                                                std::get<2>(mode.param));
                         });

TEST(Fsdp2, OwnsRowsAndStoresPaddedOnes) {
    // Llama-2-7B on 6 ranks: 4096 = 5·683 + 681 rows and so on; states follow what is owned.
    const Scenario scenario =
        torch_scenario(EngineKind::fsdp2, build_llama(llama_2_7b_config(), torch_lowering()), 6, 3);
    const EngineOutput output = run_engine(scenario);
    ASSERT_EQ(output.programs.size(), 2U);
    std::uint64_t owned = 0, ranks = 0;
    for (std::size_t i = 0; i < output.programs.size(); ++i) {
        std::uint64_t members = 0;
        for (const RankRange& range : output.program_ranks[i]) members += range.last - range.first + 1;
        EXPECT_EQ(resident_elements(output.programs[i], BufferRole::parameters), 1'123'454'315U);
        owned += members * resident_elements(output.programs[i], BufferRole::variance);
        ranks += members;
    }
    EXPECT_EQ(ranks, 6U);
    EXPECT_EQ(owned, llama_2_7b_parameters);
}

TEST(Fsdp2, KeepsTwelveBytesAParameterBetweenSteps) {
    const Scenario scenario =
        torch_scenario(EngineKind::fsdp2, build_llama(llama_2_7b_config(), torch_lowering()), 8, 3);
    const Plan plan = make_plan(scenario);
    const std::uint64_t states = 12 * llama_2_7b_parameters / 8;
    const std::uint64_t tensors = 291, step_counts = tensors * 512, workspaces = 2 * (32ULL << 20);
    EXPECT_EQ(plan.rank_groups.front().resident.count(), states + step_counts + workspaces);
}

TEST(Fsdp2, SplitsAllButNormsOverTensorParallelRanks) {
    Scenario scenario =
        torch_scenario(EngineKind::fsdp2, build_llama(llama_2_7b_config(), torch_lowering()), 8, 3);
    scenario.training.tensor_parallel = 2;
    scenario.training.sequence_parallel = true;
    scenario.training.data_parallel = scenario.training.shard_group = 4;
    const EngineOutput output = run_engine(scenario);
    const std::uint64_t norms = 65 * 4096;
    EXPECT_EQ(output.rank_models.front().model.parameter_count(),
              (llama_2_7b_parameters - norms) / 2 + norms);
    EXPECT_EQ(resident_elements(output.programs.front(), BufferRole::parameters),
              ((llama_2_7b_parameters - norms) / 2 + norms) / 4);
}

TEST(Fsdp2, DividesActivationsByContextParallelism) {
    const auto activations = [](std::uint64_t degree, std::uint64_t length) {
        Scenario scenario =
            torch_scenario(EngineKind::fsdp2, build_llama(llama_2_7b_config(), torch_lowering()), 8, 3);
        scenario.training.context_parallel = degree;
        scenario.training.data_parallel = 8 / degree;
        scenario.training.sequence_length = length;
        return make_plan(scenario).rank_groups.front().steady.at_peak;
    };
    EXPECT_EQ(activations(4, 4096), activations(1, 1024));
}

TEST(Fsdp2, SplitsEveryParameterOverPipelineStagesOnce) {
    Scenario scenario =
        torch_scenario(EngineKind::fsdp2, build_llama(llama_2_7b_config(), torch_lowering()), 8, 2);
    scenario.training.pipeline_parallel = 4;
    scenario.training.data_parallel = scenario.training.shard_group = 2;
    scenario.training.gradient_accumulation_steps = 8;
    const EngineOutput output = run_engine(scenario);
    ASSERT_EQ(output.programs.size(), 4U);
    std::uint64_t sum = 0;
    for (const StepProgram& program : output.programs)
        sum += resident_elements(program, BufferRole::variance);
    EXPECT_EQ(2 * sum, llama_2_7b_parameters);
    EXPECT_EQ(output.program_ranks[1], (std::vector<RankRange>{{2, 3}}));
}

TEST(Fsdp1, AlignsParametersAndPadsTheEnd) {
    for (const auto& [ranks, padded] : {std::pair{8U, 202'383'360U}, std::pair{7U, 202'383'363U}}) {
        const Scenario scenario =
            torch_scenario(EngineKind::fsdp1, build_llama(llama_2_7b_config(), torch_lowering()), ranks, 3);
        const EngineOutput output = run_engine(scenario);
        EXPECT_EQ(output.layout.units[1].numel, 202'383'360U);
        EXPECT_EQ(output.layout.units[1].padded_numel, padded);
    }
}

TEST(Ddp, KeepsItsBucketsBesideTheGradients) {
    // fp32 throughout: 4 + 4 + 8 between steps, 4 more for gradients.
    Scenario scenario = torch_scenario(EngineKind::ddp, build_llama(small_llama(), torch_lowering()), 2, 0);
    const EngineOutput output = run_engine(scenario);
    const StepProgram& program = output.programs.front();
    const std::uint64_t parameters = scenario.model.parameter_count();
    EXPECT_EQ(resident_elements(program, BufferRole::parameters), parameters);
    EXPECT_EQ(resident_elements(program, BufferRole::gradient_bucket), parameters);
    EXPECT_EQ(resident_elements(program, BufferRole::variance), parameters);
}

TEST(ZeroRedundancyOptimizer, GivesWholeParametersToTheLightestRank) {
    const ModelSpec model = build_llama(llama_2_7b_config(), {});
    const auto heaviest = [&](std::uint64_t ranks) {
        std::vector<std::uint64_t> load(ranks, 0);
        const std::vector<std::uint64_t> owners = zero_redundancy_owners(model, ranks);
        for (std::size_t p = 0; p < owners.size(); ++p) load[owners[p]] += model.parameters[p].numel;
        return static_cast<double>(*std::max_element(load.begin(), load.end())) * static_cast<double>(ranks) /
               static_cast<double>(llama_2_7b_parameters);
    };
    EXPECT_NEAR(heaviest(8), 1.010, 0.001);
    EXPECT_NEAR(heaviest(64), 1.245, 0.001);
}

TEST(Recompute, KeepsWhatThePolicyNames) {
    // Of a layer's products every second is kept (q, v, gate, down) with attention's output and log-sum-exp;
    // compiled, down's output goes, which nothing reads.
    const auto forward_end = [](Kernels kernels, Recompute recompute) {
        Scenario scenario =
            torch_scenario(EngineKind::single, build_llama(small_llama(), torch_lowering(kernels)), 1, 0);
        scenario.training.kernels = kernels;
        scenario.training.recompute = recompute;
        const EngineOutput output = run_engine(scenario);
        const auto& section = output.programs.front().step.front();
        std::map<BufferId, std::uint64_t> live;
        for (const Operation& operation : section.operations) {
            if (const auto* a = std::get_if<Allocate>(&operation.body)) {
                const Buffer& buffer = output.programs.front().buffers[a->buffer];
                const bool layer = buffer.role == BufferRole::activation && buffer.owner == 2;
                if (layer) live[a->buffer] = buffer.elements * bytes_per_element(buffer.dtype);
            } else if (const auto* f = std::get_if<Free>(&operation.body)) {
                live.erase(f->buffer);
            } else if (const auto* c = std::get_if<Compute>(&operation.body)) {
                if (c->block == 4) break;  // the head: every layer has run
            }
        }
        std::uint64_t bytes = 0;
        for (const auto& [id, size] : live) bytes += size;
        return bytes / 64;  // a token
    };
    const std::uint64_t output = 2 * 64, hidden = 2 * 64, kv = 2 * 32, ffn = 2 * 160, log_sum_exp = 4 * 4;
    EXPECT_EQ(forward_end(Kernels::eager, Recompute::full), output);
    EXPECT_EQ(forward_end(Kernels::eager, Recompute::selective_op),
              output + hidden + kv + hidden + log_sum_exp + ffn + hidden);
    EXPECT_EQ(forward_end(Kernels::compiled, Recompute::selective_op),
              output + hidden + kv + hidden + log_sum_exp + ffn);
}

}  // namespace
}  // namespace zeroplan
