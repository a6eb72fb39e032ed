#include "engines/megatron_buffer.hpp"

#include <gtest/gtest.h>

namespace zeroplan {
namespace {

/// Llama-2-7B as a list of tensors: embedding; q, k, v, o, gate, up, down and two norms a layer; norm; head.
std::vector<BufferedParameter> llama_2_7b() {
    constexpr std::uint64_t h = 4096, f = 11008, v = 32000;
    std::vector<BufferedParameter> parameters{{v * h}};
    for (int layer = 0; layer < 32; ++layer)
        for (const std::uint64_t n : {h * h, h * h, h * h, h * h, f * h, f * h, h * f, h, h})
            parameters.push_back({n});
    parameters.push_back({h});
    parameters.push_back({v * h});
    return parameters;
}

MegatronBuffer llama_buffer(std::uint64_t ranks, bool high_busbw) {
    return megatron_buffer(llama_2_7b(), {.data_parallel = ranks,
                                          .distributed_optimizer = true,
                                          .bucket_size = default_bucket_size(ranks),
                                          .pad_for_high_nccl_busbw = high_busbw});
}

TEST(MegatronBuffer, DefaultBucketSizeGrowsWithTheGroup) {
    EXPECT_EQ(default_bucket_size(8), 40'000'000U);
    EXPECT_EQ(default_bucket_size(64), 64'000'000U);
    EXPECT_EQ(default_bucket_size(1024), 1'024'000'000U);
}

TEST(MegatronBuffer, PutsLlama7BInto130BucketsWithoutWaste) {
    const MegatronBuffer buffer = llama_buffer(8, false);
    EXPECT_EQ(buffer.bucket_ends.size(), 130U);
    EXPECT_EQ(buffer.numel, 6'738'415'616U);
}

TEST(MegatronBuffer, PaddingForHighBusBandwidthCosts1830912Elements) {
    EXPECT_EQ(llama_buffer(8, true).numel - 6'738'415'616U, 1'830'912U);
}

TEST(MegatronBuffer, StandsInReverseOrderOnMultiplesOf64) {
    const MegatronBuffer buffer =
        megatron_buffer({{100}, {30}, {65}}, {.data_parallel = 4, .distributed_optimizer = true});
    EXPECT_EQ(buffer.offsets, (std::vector<std::uint64_t>{192, 128, 0}));
    EXPECT_EQ(buffer.numel, 384U);  // 292 up to a multiple of lcm(4, 128)
    EXPECT_EQ(buffer.bucket_ends.size(), 1U);
}

TEST(MegatronBuffer, PadsNothingWithoutTheDistributedOptimizer) {
    const MegatronBuffer buffer = megatron_buffer({{100}, {30}, {65}}, {.data_parallel = 4});
    EXPECT_EQ(buffer.numel, 195U);
}

TEST(MegatronBuffer, ASharedEmbeddingHasABucketOfItsOwn) {
    const MegatronBuffer buffer =
        megatron_buffer({{1000, true}, {64}, {64}}, {.data_parallel = 2, .distributed_optimizer = true});
    EXPECT_EQ(buffer.bucket_ends, (std::vector<std::uint64_t>{128, 128 + 1024}));
}

TEST(MegatronBuffer, RanksOwnEveryElementOnce) {
    const std::vector<BufferedParameter> parameters{{1000}, {77}, {64}, {513}};
    for (const std::uint64_t ranks : {1ULL, 2ULL, 3ULL, 8ULL}) {
        const MegatronBuffer buffer = megatron_buffer(
            parameters, {.data_parallel = ranks, .distributed_optimizer = true, .bucket_size = 500});
        std::vector<std::uint64_t> owned(parameters.size());
        for (std::uint64_t rank = 0; rank < ranks; ++rank)
            for (const OwnedPiece& piece : owned_pieces(buffer, parameters, rank, ranks))
                owned[piece.parameter] += piece.numel;
        for (std::size_t p = 0; p < parameters.size(); ++p) EXPECT_EQ(owned[p], parameters[p].numel);
    }
}

}  // namespace
}  // namespace zeroplan
