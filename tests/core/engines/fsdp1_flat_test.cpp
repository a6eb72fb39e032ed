#include "engines/fsdp1_flat.hpp"

#include <gtest/gtest.h>

#include "core/engines/torch_scenarios.hpp"

namespace zeroplan {
namespace {

/// Two linears without bias of 3 × 5, one after another in one layer of one unit.
Scenario two_linears(std::uint64_t ranks) {
    return torch_scenario(EngineKind::fsdp1,
                          build_plain_stack("stack",
                                            std::vector<StackLayer>{{3, 5, false, ActivationFunction::none},
                                                                    {5, 3, false, ActivationFunction::none}},
                                            "mse"),
                          ranks, 3);
}

// 16 bytes are 8 elements of bf16: the second 15 elements begin at 16, and 31 are padded to 32 for 4 ranks.
TEST(Fsdp1Flat, AlignsParametersAndPadsToTheRanks) {
    const Scenario scenario = two_linears(4);
    const TorchUnits units = torch_units(scenario.model, "root");
    const std::vector<FlatParameter> flats = flat_parameters(scenario, units);
    ASSERT_EQ(flats.size(), 1U);
    EXPECT_EQ(flats[0].parameters, (std::vector<PlacedParameter>{{0, 0}, {1, 16}}));
    EXPECT_EQ(flats[0].numel, 31U);
    EXPECT_EQ(flats[0].padded, 32U);
    EXPECT_EQ(flats[0].shard, 8U);
}

TEST(Fsdp1Flat, KeepsFrozenParametersApart) {
    Scenario scenario = two_linears(4);
    scenario.model.parameters[1].trainable = false;
    const TorchUnits units = torch_units(scenario.model, "root");
    const std::vector<FlatParameter> flats = flat_parameters(scenario, units);
    ASSERT_EQ(flats.size(), 2U);
    EXPECT_FALSE(flats[0].trainable);
    EXPECT_EQ(flats[0].padded, 16U);
    EXPECT_TRUE(flats[1].trainable);
    // In the unit's layout one flat parameter follows the other.
    const ShardLayout layout = fsdp1_layout(flats, units, 4);
    EXPECT_EQ(layout.units[0].parameters, (std::vector<PlacedParameter>{{1, 0}, {0, 16}}));
    EXPECT_EQ(layout.units[0].padded_numel, 32U);
}

}  // namespace
}  // namespace zeroplan
