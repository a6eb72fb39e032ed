#include "engines/ddp_buckets.hpp"

#include <gtest/gtest.h>

#include "zeroplan/build_model.hpp"

namespace zeroplan {
namespace {

/// Weights of 512 × 512, 1 MiB each in fp32.
ModelSpec stack(std::uint64_t layers) {
    return build_plain_stack(
        "stack", std::vector<StackLayer>(layers, {512, 512, false, ActivationFunction::none}), "mse");
}

// The first bucket closes at 1 MiB, the others at 25: of 27 weights the last alone, then 25, then the first.
TEST(DdpBuckets, BeginSmallAtTheLastParameter) {
    const std::vector<DdpBucket> buckets = ddp_buckets(stack(27), 4);
    ASSERT_EQ(buckets.size(), 3U);
    EXPECT_EQ(buckets[0].parameters, std::vector<std::uint32_t>{26});
    EXPECT_EQ(buckets[1].parameters.size(), 25U);
    EXPECT_EQ(buckets[1].parameters.front(), 25U);
    EXPECT_EQ(buckets[1].elements, 25U * 512U * 512U);
    EXPECT_EQ(buckets[2].parameters, std::vector<std::uint32_t>{0});
}

TEST(DdpBuckets, LeaveOutFrozenParameters) {
    ModelSpec model = stack(3);
    model.parameters[2].trainable = false;
    const std::vector<DdpBucket> buckets = ddp_buckets(model, 4);
    ASSERT_EQ(buckets.size(), 2U);
    EXPECT_EQ(buckets[0].parameters, std::vector<std::uint32_t>{1});
    EXPECT_EQ(buckets[1].parameters, std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace zeroplan
