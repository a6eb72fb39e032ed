#include "engines/torch_units.hpp"

#include <gtest/gtest.h>

#include "core/engines/torch_scenarios.hpp"

namespace zeroplan {
namespace {

TEST(TorchUnits, ATiedWeightIsItsOwners) {
    const ModelSpec model = build_llama(small_llama(true), torch_lowering());
    const std::vector<std::uint32_t> owners = parameter_owners(model);
    ASSERT_EQ(owners.size(), model.parameters.size());
    EXPECT_EQ(model.parameters.back().name, "lm_head.weight");
    EXPECT_EQ(owners.back(), 0U);
    for (std::uint32_t p = 0; p + 1 < owners.size(); ++p) EXPECT_EQ(owners[p], p);
}

// Units: the root (0), which has nothing, the embedding (1), three layers (2 to 4), the head (5). A tied head
// reads the embedding's.
TEST(TorchUnits, ABlockReadsItsOwnAndThoseOfTiedWeights) {
    for (const bool tied : {false, true}) {
        const ModelSpec model = build_llama(small_llama(tied), torch_lowering());
        const TorchUnits units = torch_units(model, "layer+embedding+output");
        EXPECT_EQ(units_read_by(model, units, 1), (std::vector<std::uint32_t>{2}));
        const auto head = static_cast<std::uint32_t>(model.blocks.size() - 1);
        EXPECT_EQ(units_read_by(model, units, head),
                  tied ? (std::vector<std::uint32_t>{5, 1}) : (std::vector<std::uint32_t>{5}));
    }
}

}  // namespace
}  // namespace zeroplan
