#include "engines/deepspeed_layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/engines/torch_scenarios.hpp"
#include "engines/deepspeed_stage3.hpp"

namespace zeroplan {
namespace {

// Worked out from the rules of DeepSpeed's sources for Llama-2-7B (6,738,415,616 parameters, 291 tensors).

ModelSpec llama() {
    return build_llama(llama_2_7b_config(), torch_lowering());
}

TEST(FlatGroup, PadsTheEndToTwoElementsARank) {
    const ModelSpec model = llama();
    const auto check = [&](std::uint64_t ranks, std::uint64_t padded, std::uint64_t partition) {
        const FlatGroup group = flat_group(model, ranks);
        EXPECT_EQ(group.numel, 6'738'415'616U);
        EXPECT_EQ(group.padded_numel, padded);
        EXPECT_EQ(group.partition(), partition);
    };
    check(8, 6'738'415'616, 842'301'952);
    check(64, 6'738'415'616, 105'287'744);
    check(6, 6'738'415'620, 1'123'069'270);
    check(7, 6'738'415'628, 962'630'804);
}

TEST(PartitionShare, CountsOverlappingParametersWhole) {
    const ModelSpec model = llama();
    const auto check = [&](std::uint64_t ranks, std::uint64_t least, std::uint64_t most) {
        const FlatGroup group = flat_group(model, ranks);
        std::vector<std::uint64_t> whole;
        for (std::uint64_t r = 0; r < ranks; ++r)
            whole.push_back(partition_share(group, model, r).whole_numel);
        const auto [low, high] = std::minmax_element(whole.begin(), whole.end());
        EXPECT_EQ(*low, least);
        EXPECT_EQ(*high, most);
    };
    check(8, 843'087'872, 899'710'976);
    check(64, 106'962'944, 243'269'632);
    check(6, 1'124'114'432, 1'180'745'728);
    check(7, 974'159'872, 1'011'916'800);
}

TEST(PartitionShare, TakesTheLargestPieceInsideThePartition) {
    const ModelSpec model = llama();
    const FlatGroup group = flat_group(model, 8);
    // The embedding, 32000 · 4096 elements, lies in the first partition whole.
    EXPECT_EQ(partition_share(group, model, 0).largest_piece, 131'072'000U);
    EXPECT_EQ(partition_share(flat_group(model, 64), model, 0).largest_piece, 105'287'744U);
}

TEST(FlatGroup, DealsParametersInTurn) {
    const ModelSpec model = build_llama(small_llama(), torch_lowering());
    const FlatGroup group = flat_group(model, 2, true);
    ASSERT_GE(group.parameters.size(), 3U);
    EXPECT_EQ(group.parameters[0].parameter, 0U);
    EXPECT_EQ(group.parameters[1].parameter, 2U);
    EXPECT_EQ(group.numel, flat_group(model, 2).numel);
}

TEST(RanksByShare, StandTogetherUnderTheLargest) {
    const ModelSpec model = llama();
    const FlatGroup group = flat_group(model, 64);
    const std::vector<RankClass> classes = ranks_by_share(group, model, 4);
    EXPECT_LE(classes.size(), 4U);
    std::size_t members = 0;
    for (const RankClass& same : classes) {
        members += same.members.size();
        std::uint64_t largest_piece = 0;
        for (const std::uint64_t r : same.members) {
            EXPECT_GE(same.share.whole_numel, partition_share(group, model, r).whole_numel);
            largest_piece = std::max(largest_piece, partition_share(group, model, r).largest_piece);
        }
        EXPECT_EQ(same.share.largest_piece, largest_piece);
    }
    EXPECT_EQ(members, 64U);
}

TEST(RanksByShare, CountTheSharesThatStandTogether) {
    const ModelSpec model = llama();
    const FlatGroup group = flat_group(model, 64);
    const auto all_shares = [&](std::size_t most) {
        std::size_t shares = 0;
        for (const RankClass& same : ranks_by_share(group, model, most)) shares += same.shares;
        return shares;
    };
    const std::size_t different = ranks_by_share(group, model, 64).size();
    EXPECT_GT(different, 4U);
    EXPECT_EQ(all_shares(4), different);
    EXPECT_EQ(all_shares(64), different);
    for (const RankClass& same : ranks_by_share(group, model, 64)) EXPECT_EQ(same.shares, 1U);
}

TEST(Stage3Shards, RoundEveryParameterUp) {
    const ModelSpec model = llama();
    const auto sum = [&](std::uint64_t ranks) {
        std::uint64_t elements = 0;
        for (const Parameter& p : model.parameters) elements += stage3_shard_numel(p.numel, ranks);
        return elements;
    };
    EXPECT_EQ(sum(8), 842'301'952U);
    EXPECT_EQ(sum(6), 1'123'069'367U);
    EXPECT_EQ(sum(6) * 6 - 6'738'415'616U, 586U);
    EXPECT_EQ(sum(7), 962'631'010U);
    EXPECT_EQ(sum(7) * 7 - 6'738'415'616U, 1454U);
}

TEST(SubGroups, CloseWhenTheirShardsReachTheSize) {
    const ModelSpec model = llama();
    EXPECT_EQ(sub_groups(model, 8, 1'000'000'000).size(), 1U);
    const std::vector<SubGroup> groups = sub_groups(model, 1, 1'000'000'000);
    EXPECT_EQ(groups.size(), 7U);
    std::uint64_t elements = 0;
    for (const SubGroup& group : groups) elements += group.numel;
    EXPECT_EQ(elements, 6'738'415'616U);
    for (std::size_t g = 0; g + 1 < groups.size(); ++g) EXPECT_GE(groups[g].numel, 1'000'000'000U);
}

}  // namespace
}  // namespace zeroplan
