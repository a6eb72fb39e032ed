#include <gtest/gtest.h>

#include "core/engines/program_hazards.hpp"
#include "core/engines/torch_scenarios.hpp"
#include "engines/engine.hpp"
#include "zeroplan/plan.hpp"
#include "zeroplan/step_timeline.hpp"

namespace zeroplan {
namespace {

Scenario offloading(EngineKind engine, std::uint64_t ranks, std::uint32_t stage) {
    Scenario scenario =
        torch_scenario(engine, build_llama(small_llama(false), torch_lowering()), ranks, stage);
    if (engine == EngineKind::deepspeed) {
        TrainingConfig& training = scenario.training;
        training.parameter_dtype = training.gradient_dtype = training.reduce_dtype = DType::bf16;
        training.master_dtype = DType::fp32;
    }
    scenario.training.optimizer_implementation = OptimizerImplementation::fused;
    scenario.cluster.gpus_per_node = ranks;
    scenario.cluster.gpu.hbm_bytes_per_s = 1e12;
    scenario.cluster.gpu.link = "nvlink4";
    scenario.cluster.gpu.link_bytes_per_s = 450e9;
    scenario.cluster.host = {.memory = Bytes{1ULL << 50},
                             .dram_bytes_per_s = 400e9,
                             .pcie_bytes_per_s = 32e9,
                             .nvme_bytes_per_s = 5e9,
                             .cores = 64};
    return scenario;
}

/// What a step of a program moves and steps on the host.
struct Moved {
    std::uint64_t to_host = 0, to_device = 0, to_nvme = 0, from_nvme = 0, stepped = 0, step_bytes = 0;
};

Moved moved(const StepProgram& program, BufferRole role) {
    Moved sum;
    for (const Section& section : program.step)
        for (const Operation& operation : section.operations) {
            if (const auto* step = std::get_if<HostStep>(&operation.body)) {
                sum.stepped += section.repeat * step->elements;
                sum.step_bytes += section.repeat * step->bytes;
            }
            const auto* copy = std::get_if<HostCopy>(&operation.body);
            if (copy == nullptr || copy->role != role) continue;
            const std::uint64_t bytes = section.repeat * copy->bytes;
            (copy->path == CopyPath::to_host     ? sum.to_host
             : copy->path == CopyPath::to_device ? sum.to_device
             : copy->path == CopyPath::to_nvme   ? sum.to_nvme
                                                 : sum.from_nvme) += bytes;
        }
    return sum;
}

StepProgram first_program(const Scenario& scenario) {
    StepProgram program = run_engine(scenario).programs.front();
    const auto found = hazards(program);
    EXPECT_TRUE(found.empty()) << found.front();
    return program;
}

TEST(Offload, DeepSpeedsPartitionIsSteppedOnTheHost) {
    Scenario scenario = offloading(EngineKind::deepspeed, 4, 2);
    scenario.training.offload_optimizer = OffloadTarget::cpu;
    const std::uint64_t partition = (scenario.model.parameter_count() + 7) / 8 * 8 / 4;
    const StepProgram program = first_program(scenario);
    const Moved gradients = moved(program, BufferRole::gradients);
    EXPECT_EQ(gradients.to_host, 4 * partition);
    EXPECT_EQ(gradients.to_device, 0U);
    EXPECT_EQ(gradients.stepped, partition);
    // Unscaled (8 B), then master weights and two moments both ways, the gradient once.
    EXPECT_EQ(gradients.step_bytes, partition * (8 + 3 * 8 + 4));
    EXPECT_EQ(moved(program, BufferRole::parameters).to_device, 4 * partition);
}

TEST(Offload, DeepSpeedsMicroBatchesAddWholeGradientsOnTheDevice) {
    Scenario scenario = offloading(EngineKind::deepspeed, 1, 2);
    scenario.training.offload_optimizer = OffloadTarget::cpu;
    scenario.training.gradient_accumulation_steps = 3;
    const std::uint64_t numel = scenario.model.parameter_count();
    const Moved gradients = moved(first_program(scenario), BufferRole::gradients);
    EXPECT_EQ(gradients.to_host, 2 * 2 * numel + 4 * numel);
    EXPECT_EQ(gradients.to_device, 3 * 2 * numel);
}

std::uint64_t shards(const ModelSpec& model, std::uint64_t ranks) {
    std::uint64_t sum = 0;
    for (const Parameter& parameter : model.parameters) sum += (parameter.numel + ranks - 1) / ranks;
    return sum;
}

TEST(Offload, Stage3SendsShardsTwiceAndBringsThemBackToBeMeasured) {
    Scenario scenario = offloading(EngineKind::deepspeed, 4, 3);
    scenario.training.offload_optimizer = OffloadTarget::cpu;
    const std::uint64_t numel = shards(scenario.model, 4);
    const StepProgram program = first_program(scenario);
    const Moved gradients = moved(program, BufferRole::gradients);
    EXPECT_EQ(gradients.to_host, (2 + 4) * numel);
    EXPECT_EQ(gradients.to_device, 2 * numel);
    EXPECT_EQ(gradients.stepped, numel);
    EXPECT_EQ(moved(program, BufferRole::parameters).to_device, 2 * numel);
}

TEST(Offload, Stage3OnDrivesReadsStepsAndWrites) {
    Scenario scenario = offloading(EngineKind::deepspeed, 4, 3);
    scenario.training.offload_optimizer = OffloadTarget::nvme;
    const std::uint64_t numel = shards(scenario.model, 4);
    const StepProgram program = first_program(scenario);
    EXPECT_EQ(moved(program, BufferRole::gradients).to_nvme, 4 * numel);
    const Moved states = moved(program, BufferRole::momentum);
    EXPECT_EQ(states.from_nvme, (4 + 4 + 8) * numel);
    EXPECT_EQ(states.to_nvme, (4 + 8) * numel);
}

TEST(Offload, FsdpBringsShardsToEveryGatherAndSendsGradients) {
    for (const EngineKind engine : {EngineKind::fsdp1, EngineKind::fsdp2}) {
        Scenario scenario = offloading(engine, 4, 3);
        scenario.training.offload_parameters = scenario.training.offload_optimizer = OffloadTarget::cpu;
        const std::uint64_t numel = shards(scenario.model, 4);
        const StepProgram program = first_program(scenario);
        const Moved gradients = moved(program, BufferRole::gradients);
        EXPECT_GE(gradients.to_host, 4 * numel);
        EXPECT_LE(gradients.to_host, 4 * numel + 4 * 1000);
        EXPECT_GE(gradients.stepped, numel);
        EXPECT_EQ(gradients.step_bytes, gradients.stepped * (8 + 4 + 16));
        // Forward and backward gather; what ends forward is still there when backward begins.
        EXPECT_GT(moved(program, BufferRole::parameters).to_device, 4 * numel);
        EXPECT_LE(moved(program, BufferRole::parameters).to_device, 2 * (4 * numel + 4 * 1000));
    }
}

// Each gradient's way to the host, the step there and the way back overlap with those of the next one.
TEST(Offload, AlmostAllTakesNoLongerThanAll) {
    for (const EngineKind engine : {EngineKind::ddp, EngineKind::fsdp2}) {
        Scenario scenario = offloading(engine, 2, engine == EngineKind::ddp ? 0 : 3);
        scenario.training.offload_optimizer = OffloadTarget::cpu;
        const auto step = [&](double fraction) {
            scenario.training.offload_fraction = fraction;
            return closed_form_step(make_plan(scenario)).step_time_s;
        };
        // What stays is stepped on the device in between: a kernel a parameter.
        const double kernels = 10e-6 * static_cast<double>(scenario.model.parameters.size());
        EXPECT_LT(step(0.99), step(1) + kernels) << to_string(engine);
    }
}

TEST(Offload, NoGradientsCopyWaitsForAStepOnTheDevice) {
    for (const EngineKind engine : {EngineKind::ddp, EngineKind::fsdp2}) {
        Scenario scenario = offloading(engine, 2, engine == EngineKind::ddp ? 0 : 3);
        scenario.training.offload_optimizer = OffloadTarget::cpu;
        scenario.training.offload_fraction = 0.5;
        std::size_t copies = 0;
        for (const Section& section : first_program(scenario).step)
            for (const Operation& operation : section.operations) {
                const auto* copy = std::get_if<HostCopy>(&operation.body);
                if (copy == nullptr || copy->path != CopyPath::to_host) continue;
                ++copies;
                for (const OperationId wait : operation.waits)
                    EXPECT_FALSE(std::holds_alternative<OptimizerStep>(section.operations[wait].body))
                        << to_string(engine);
            }
        EXPECT_EQ(copies, scenario.model.parameters.size()) << to_string(engine);
    }
}

TEST(Offload, AFractionOfEveryParameterIsSteppedOnTheHost) {
    Scenario scenario = offloading(EngineKind::single, 1, 0);
    scenario.training.offload_optimizer = OffloadTarget::cpu;
    for (const double fraction : {1.0, 0.5, 0.0}) {
        scenario.training.offload_fraction = fraction;
        std::uint64_t away = 0;
        for (const Parameter& parameter : scenario.model.parameters)
            away += static_cast<std::uint64_t>(static_cast<double>(parameter.numel) * fraction);
        const StepProgram program = first_program(scenario);
        const Moved gradients = moved(program, BufferRole::gradients);
        EXPECT_EQ(gradients.to_host, 4 * away);
        EXPECT_EQ(gradients.stepped, away);
        EXPECT_EQ(gradients.step_bytes, 28 * away);
        EXPECT_EQ(moved(program, BufferRole::parameters).to_device, 4 * away);
    }
}

TEST(Offload, LowBitStatesAreSteppedOnTheDevice) {
    Scenario scenario = offloading(EngineKind::single, 1, 0);
    scenario.training.optimizer = Optimizer::adamw_8bit;
    scenario.training.offload_optimizer = OffloadTarget::cpu;
    const StepProgram program = first_program(scenario);
    const Moved states = moved(program, BufferRole::momentum);
    EXPECT_EQ(states.stepped, 0U);
    EXPECT_GT(states.to_device, 2 * scenario.model.parameter_count());
    EXPECT_EQ(states.to_device, states.to_host);
}

TEST(Offload, ACheckpointOfEveryLayerGoesToTheHostAndComesBack) {
    for (const EngineKind engine : {EngineKind::single, EngineKind::fsdp2}) {
        Scenario scenario = offloading(engine, 1, engine == EngineKind::single ? 0 : 3);
        scenario.training.recompute = Recompute::full;
        scenario.training.offload_activations = OffloadTarget::cpu;
        const Moved activations = moved(first_program(scenario), BufferRole::activation);
        // 64 tokens of the hidden size in bf16, a layer.
        const std::uint64_t layers = scenario.model.layers;
        EXPECT_EQ(activations.to_host, layers * 64 * scenario.model.hidden_size * 2);
        EXPECT_EQ(activations.to_device, activations.to_host);
    }
}

TEST(Offload, DeepSpeedsCheckpointsHoldUpTheStep) {
    Scenario scenario = offloading(EngineKind::deepspeed, 1, 3);
    scenario.training.recompute = Recompute::full;
    scenario.training.offload_activations = OffloadTarget::cpu;
    const StepTimeline with = closed_form_step(make_plan(scenario));
    scenario.training.offload_activations = OffloadTarget::none;
    const StepTimeline without = closed_form_step(make_plan(scenario));
    EXPECT_GT(with.offload_s, 0);
    EXPECT_NEAR(with.step_time_s - without.step_time_s, with.offload_s, 1e-9);
}

}  // namespace
}  // namespace zeroplan
