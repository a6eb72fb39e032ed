#include "engines/torch_host.hpp"

#include <gtest/gtest.h>

#include "core/engines/torch_scenarios.hpp"

namespace zeroplan {
namespace {

Bytes at(const HostPhases& host, Phase phase) {
    return host[static_cast<std::size_t>(phase)].total();
}

// A block of 3,000 bytes takes 4,096; given back it serves 2,500, not 5,000.
TEST(PinnedBlocks, StayPageLockedAndAreUsedAgain) {
    PinnedBlocks blocks;
    blocks.allocate(3'000);
    EXPECT_EQ(blocks.total(), Bytes{4096});
    blocks.free(3'000);
    blocks.allocate(2'500);
    EXPECT_EQ(blocks.total(), Bytes{4096});
    blocks.allocate(5'000);
    EXPECT_EQ(blocks.total(), Bytes{4096 + 8192});
}

TEST(PinnedBlock, IsAPowerOfTwo) {
    EXPECT_EQ(pinned_block(0), Bytes{});
    EXPECT_EQ(pinned_block(4096), Bytes{4096});
    EXPECT_EQ(pinned_block(1'000'000'000), Bytes{1ULL << 30});
}

TEST(FsdpHost, PinsShardsAndGradients) {
    TrainingConfig training;
    training.offload_parameters = OffloadTarget::cpu;
    const HostPhases host = fsdp_host(training, {{3000, 3000}, {100, 0}}, 24000);
    EXPECT_EQ(at(host, Phase::load), Bytes{4096 + 128});
    EXPECT_EQ(at(host, Phase::steady_step), Bytes{2 * 4096 + 128 + 24000});
}

// torchao's CPUOffloadOptimizer: a copy of what is trained and of its gradient, then states.
TEST(FsdpHost, CopiesWhatTheHostStepsWithoutParameters) {
    TrainingConfig training;
    training.offload_optimizer = OffloadTarget::cpu;
    const std::vector<OffloadedShard> shards{{3000, 3000}, {100, 0}};
    const HostPhases host = fsdp_host(training, shards, 24000);
    EXPECT_EQ(at(host, Phase::load), Bytes{});
    EXPECT_EQ(at(host, Phase::init), Bytes{2 * 4096});
    EXPECT_EQ(at(host, Phase::first_step), Bytes{2 * 4096 + 24000});
    training.offload_fraction = 0.5;  // 1,500 bytes
    EXPECT_EQ(at(fsdp_host(training, shards, 12000), Phase::init), Bytes{2 * 2048});
    // Paged 8-bit states are stepped on the device.
    training.optimizer = Optimizer::adamw_8bit;
    EXPECT_EQ(at(fsdp_host(training, shards, 6000), Phase::first_step), Bytes{6000});
}

TEST(ModuleHost, HoldsTheModuleWhileItLoads) {
    // Llama-2-7B in fp32 on 8 ranks of a node: 4 bytes a parameter and process, nothing afterwards.
    constexpr std::uint64_t parameters = 6'738'415'616;
    Scenario scenario =
        torch_scenario(EngineKind::ddp, build_llama(llama_2_7b_config(), torch_lowering()), 8, 0);
    scenario.cluster.gpus_per_node = 8;
    const auto host = [&](Phase phase) {
        return make_plan(scenario)
            .rank_groups[0]
            .phases[static_cast<std::size_t>(phase)]
            .host_per_node.count();
    };
    EXPECT_EQ(host(Phase::load), 8 * 4 * parameters);
    EXPECT_EQ(host(Phase::init), 0U);
    EXPECT_EQ(host(Phase::steady_step), 0U);
    // Offloaded: page-locked copies of parameters and gradients, and 8 bytes of states, 4 more for each of
    // 291 tensors (its step count).
    scenario.training.offload_optimizer = OffloadTarget::cpu;
    EXPECT_GE(host(Phase::init), 8 * 8 * parameters);
    EXPECT_LT(host(Phase::init), 2 * 8 * 8 * parameters);
    EXPECT_EQ(host(Phase::steady_step) - host(Phase::init), 8 * (8 * parameters + 4 * 291));
}

TEST(FsdpHost, CountsEveryProcessOfANode) {
    // Llama-2-7B over 8 ranks in fp32: states 8 bytes an element, shards and gradients in pinned blocks.
    for (const EngineKind engine : {EngineKind::fsdp1, EngineKind::fsdp2}) {
        Scenario scenario = torch_scenario(engine, build_llama(llama_2_7b_config(), torch_lowering()), 8, 3);
        scenario.training.offload_parameters = scenario.training.offload_optimizer = OffloadTarget::cpu;
        scenario.cluster.gpus_per_node = 8;
        scenario.cluster.host.memory = Bytes{1ULL << 50};
        const std::uint64_t exact = 16ULL * 6'738'415'616;
        const Plan plan = make_plan(scenario);
        EXPECT_GE(plan.memory.host_per_node.count(), exact);
        EXPECT_LE(plan.memory.host_per_node.count(), 2 * exact);
    }
}

}  // namespace
}  // namespace zeroplan
