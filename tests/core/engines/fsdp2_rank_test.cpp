#include "engines/fsdp2_rank.hpp"

#include <gtest/gtest.h>

#include "core/engines/torch_scenarios.hpp"

namespace zeroplan {
namespace {

// The head of 320 × 64 in chunks of ⌈320/6⌉ = 54 rows: the last of 6 ranks owns 50, and stores 54.
TEST(Fsdp2Rank, StoresPaddedRows) {
    const Scenario scenario =
        torch_scenario(EngineKind::fsdp2, build_llama(small_llama(), torch_lowering()), 6, 3);
    const TorchUnits units = torch_units(scenario.model, "layer");
    const Fsdp2Rank last(scenario, units, 5, false);
    const auto head = static_cast<std::uint32_t>(scenario.model.parameters.size() - 1);
    EXPECT_EQ(last.shard(head).owned, 50U * 64U);
    EXPECT_EQ(last.padded(head), 54U * 64U);
    // The root's: embedding and head of 54 rows, and 64 / 6 → 11 elements of the last norm.
    EXPECT_EQ(last.unit_padded(0), 2U * 54U * 64U + 11U);
    EXPECT_EQ(last.unit_trained(0), last.unit_padded(0));
}

TEST(Fsdp2Rank, SumsGradientsBeforeOrAfterTheirReduction) {
    Scenario scenario = torch_scenario(EngineKind::fsdp2, build_llama(small_llama(), torch_lowering()), 4, 3);
    const TorchUnits units = torch_units(scenario.model, "layer");
    EXPECT_FALSE(Fsdp2Rank(scenario, units, 0, false).accumulates());
    scenario.training.gradient_accumulation_steps = 2;
    EXPECT_TRUE(Fsdp2Rank(scenario, units, 0, false).accumulates());
    EXPECT_TRUE(Fsdp2Rank(scenario, units, 0, true).sums_unsharded());
    scenario.training.fsdp.gradient_sync = GradientSync::last;
    EXPECT_TRUE(Fsdp2Rank(scenario, units, 0, false).sums_unsharded());
    EXPECT_FALSE(Fsdp2Rank(scenario, units, 0, false).accumulates());
}

}  // namespace
}  // namespace zeroplan
