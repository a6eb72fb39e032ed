#include "engines/megatron_fsdp_layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace zeroplan {
namespace {

using Shape = std::vector<std::uint64_t>;

/// One layer that holds parameters of these shapes.
ModelSpec layer_of(const std::vector<Shape>& shapes) {
    ModelSpec model;
    model.block_kinds.push_back({.name = "layer", .tensors = {}, .operators = {}, .is_layer = true});
    Block block{.name = "layer", .kind = 0, .parameters = {}};
    for (const Shape& shape : shapes) {
        block.parameters.push_back(static_cast<std::uint32_t>(model.parameters.size()));
        model.parameters.push_back(
            {.name = "p" + std::to_string(model.parameters.size()),
             .shape = shape,
             .numel = std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>{})});
    }
    model.blocks.push_back(std::move(block));
    return model;
}

std::vector<FsdpBucket> buckets_of(const ModelSpec& model, std::uint64_t shards) {
    return fsdp_buckets(model, 0, static_cast<std::uint32_t>(model.parameters.size()),
                        {.shards = shards, .expert_shards = shards});
}

/// Figures of build_data_parallel_buffer_index itself (Megatron-LM d98e8a6), run on these shapes: fused
/// query, key and value weights, norm, projection, fused gate and up weights, norm, down weights.
TEST(MegatronFsdpLayout, PlacesLlama7BsLayerAsTheSourceDoes) {
    const ModelSpec model =
        layer_of({{12288, 4096}, {4096}, {4096, 4096}, {22016, 4096}, {4096}, {4096, 11008}});
    for (const std::uint64_t shards : {8ULL, 64ULL}) {
        const std::vector<FsdpBucket> buckets = buckets_of(model, shards);
        ASSERT_EQ(buckets.size(), 1U);
        EXPECT_EQ(buckets[0].chunk, 176'128U);  // lcm(4096, 11008)
        EXPECT_EQ(buckets[0].parameters, (std::vector<std::uint32_t>{5, 0, 2, 3, 1, 4}));
        EXPECT_EQ(buckets[0].offsets, (std::vector<std::uint64_t>{0, 45'088'768, 95'461'376, 112'369'664,
                                                                  95'420'416, 95'424'512}));
        EXPECT_EQ(buckets[0].numel, 202'899'456U);  // of 202,383,360 parameters
    }
}

/// Likewise.
TEST(MegatronFsdpLayout, PutsShortParametersBehindTheLongOnes) {
    const ModelSpec gpt =
        layer_of({{192, 64}, {192}, {64, 64}, {64}, {64}, {64}, {256, 64}, {256}, {64, 256}});
    EXPECT_EQ(buckets_of(gpt, 4)[0].chunk, 256U);
    const std::vector<FsdpBucket> uneven = buckets_of(layer_of({{10, 6}, {9, 4}, {3}, {7}, {5}}), 2);
    EXPECT_EQ(uneven[0].chunk, 12U);
    EXPECT_EQ(uneven[0].offsets, (std::vector<std::uint64_t>{0, 60, 96, 99, 106}));
    EXPECT_EQ(uneven[0].numel, 120U);
}

TEST(MegatronFsdpLayout, NoShardPadsNothingAndHasNoUnits) {
    const ModelSpec model = layer_of({{10, 6}, {9, 4}, {3}, {7}, {5}});
    const std::vector<FsdpBucket> buckets = fsdp_buckets(model, 0, 5, {.pads = false});
    ASSERT_EQ(buckets.size(), 1U);
    EXPECT_EQ(buckets[0].numel, 111U);
    EXPECT_FALSE(buckets[0].unit.has_value());
}

TEST(MegatronFsdpLayout, CutsWhatBelongsToNoUnitAtTheBucketSize) {
    ModelSpec model = layer_of({{100, 8}, {50, 8}, {8}});
    model.block_kinds[0].is_layer = false;
    const std::vector<FsdpBucket> buckets = fsdp_buckets(model, 0, 3, {.shards = 2, .bucket_size = 500});
    ASSERT_EQ(buckets.size(), 2U);
    EXPECT_EQ(buckets[0].parameters, (std::vector<std::uint32_t>{0}));
    EXPECT_EQ(buckets[1].numel, 416U);  // 400 + 8, up to a multiple of 2 · 8
}

TEST(MegatronFsdpLayout, ExpertsAndDenseParametersHaveBucketsOfTheirOwn) {
    ModelSpec model = layer_of({{64, 8}, {64, 8}});
    model.parameters[1].name = "mlp.experts.linear_fc1.weight0";
    const std::vector<FsdpBucket> buckets = fsdp_buckets(model, 0, 2, {.shards = 8, .expert_shards = 2});
    ASSERT_EQ(buckets.size(), 2U);
    EXPECT_FALSE(buckets[0].experts);
    EXPECT_EQ(buckets[1].shards, 2U);
}

std::vector<Shape> random_shapes(std::mt19937& random) {
    std::vector<Shape> shapes;
    const auto pick = [&](unsigned most) { return std::uint64_t{1} + random() % most; };
    for (std::uint64_t i = pick(9); i-- > 0;)
        shapes.push_back(random() % 3 == 0 ? Shape{pick(40)} : Shape{pick(30), pick(24)});
    return shapes;
}

/// Whatever the shapes and the group: parameters don't overlap, and every element has one owner.
TEST(MegatronFsdpLayout, ShardsCoverEveryElementOnce) {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        const ModelSpec model = layer_of(random_shapes(random));
        const std::uint64_t shards = 1 + random() % 9;
        std::vector<std::uint64_t> owners(model.parameter_count(), 0), first(model.parameters.size(), 0);
        for (std::size_t p = 1; p < first.size(); ++p)
            first[p] = first[p - 1] + model.parameters[p - 1].numel;
        for (const FsdpBucket& bucket : buckets_of(model, shards)) {
            ASSERT_EQ(bucket.numel % (shards * bucket.chunk), 0U);
            std::vector<std::uint64_t> used(bucket.numel, 0);
            for (std::size_t i = 0; i < bucket.parameters.size(); ++i)
                for (std::uint64_t e = 0; e < model.parameters[bucket.parameters[i]].numel; ++e)
                    ++used.at(bucket.offsets[i] + e);
            ASSERT_LE(*std::max_element(used.begin(), used.end()), 1U) << "round " << round;
            for (std::uint64_t rank = 0; rank < shards; ++rank)
                for (const FsdpPiece& piece : fsdp_pieces(model, bucket, rank))
                    for (std::uint64_t e = piece.begin; e < piece.end; ++e)
                        ++owners[first[piece.parameter] + e];
        }
        ASSERT_EQ(std::count(owners.begin(), owners.end(), 1U),
                  static_cast<std::ptrdiff_t>(model.parameter_count()))
            << "round " << round;
    }
}

TEST(MegatronFsdpLayout, FindsTheRankThatOwnsMost) {
    std::mt19937 random(11);
    for (int round = 0; round < 50; ++round) {
        const ModelSpec model = layer_of(random_shapes(random));
        const std::uint64_t shards = 1 + random() % 9;
        const std::vector<FsdpBucket> buckets = buckets_of(model, shards);
        const auto owned = [&](std::uint64_t rank) {
            std::uint64_t sum = 0;
            for (const FsdpPiece& piece : fsdp_pieces(model, buckets[0], rank)) sum += piece.numel();
            return sum;
        };
        const std::uint64_t most = owned(rank_that_owns_most(model, {&buckets[0]}, shards));
        for (std::uint64_t rank = 0; rank < shards; ++rank) EXPECT_LE(owned(rank), most);
    }
}

}  // namespace
}  // namespace zeroplan
