#include "engines/zero_redundancy.hpp"

#include <gtest/gtest.h>

#include "zeroplan/build_model.hpp"

namespace zeroplan {
namespace {

using Ranks = std::vector<std::uint64_t>;

ModelSpec stack(std::uint64_t layers) {
    return build_plain_stack("stack",
                             std::vector<StackLayer>(layers, {8, 8, false, ActivationFunction::none}), "mse");
}

// Four equal weights on two ranks: two each, so that both do the same; of three the first rank has two.
TEST(ZeroRedundancy, RanksWithEqualSizesAreOneGroup) {
    const ModelSpec four = stack(4), three = stack(3);
    EXPECT_EQ(zero_redundancy_owners(three, 2), (Ranks{0, 1, 0}));
    EXPECT_EQ(zero_redundancy_groups(four, zero_redundancy_owners(four, 2), 2), (std::vector<Ranks>{{0, 1}}));
    EXPECT_EQ(zero_redundancy_groups(three, zero_redundancy_owners(three, 2), 2),
              (std::vector<Ranks>{{0}, {1}}));
}

}  // namespace
}  // namespace zeroplan
