#include "engines/fsdp2_layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/engines/torch_scenarios.hpp"

namespace zeroplan {
namespace {

ModelSpec with_shapes(const std::vector<std::vector<std::uint64_t>>& shapes) {
    ModelSpec model;
    for (const auto& shape : shapes) {
        Parameter parameter{.name = "p", .shape = shape, .numel = 1};
        for (const std::uint64_t length : shape) parameter.numel *= length;
        model.parameters.push_back(std::move(parameter));
    }
    return model;
}

/// Rank by rank, parameter by parameter.
std::vector<std::vector<std::uint64_t>> by_comparing(const ModelSpec& model, std::uint64_t ranks) {
    std::map<std::vector<std::uint64_t>, std::vector<std::uint64_t>> groups;
    for (std::uint64_t r = 0; r < ranks; ++r) {
        std::vector<std::uint64_t> owned;
        for (const Parameter& parameter : model.parameters)
            owned.push_back(row_shard(parameter, ranks, r).owned);
        groups[std::move(owned)].push_back(r);
    }
    std::vector<std::vector<std::uint64_t>> result;
    for (const auto& [owned, members] : groups) result.push_back(members);
    std::sort(result.begin(), result.end());
    return result;
}

TEST(Fsdp2RanksByOwnership, ChangeBehindTheLastWholeChunkAndTheRest) {
    // Ten rows in chunks of 3 on four ranks: 3, 3, 3, 1. Five in chunks of 2: 2, 2, 1, 0.
    EXPECT_EQ(fsdp2_ranks_by_ownership(with_shapes({{10, 2}}), 4),
              (std::vector<std::vector<std::uint64_t>>{{0, 1, 2}, {3}}));
    EXPECT_EQ(fsdp2_ranks_by_ownership(with_shapes({{10, 2}, {5}}), 4),
              (std::vector<std::vector<std::uint64_t>>{{0, 1}, {2}, {3}}));
    // One row on the first rank alone, and an empty parameter that nobody owns anything of.
    EXPECT_EQ(fsdp2_ranks_by_ownership(with_shapes({{1}, {0, 3}}), 4),
              (std::vector<std::vector<std::uint64_t>>{{0}, {1, 2, 3}}));
}

TEST(Fsdp2RanksByOwnership, AgreeWithComparingEveryRank) {
    const ModelSpec model = build_llama(llama_2_7b_config(), torch_lowering());
    for (const std::uint64_t ranks : {3U, 7U, 64U, 100U, 1000U, 4500U})
        EXPECT_EQ(fsdp2_ranks_by_ownership(model, ranks), by_comparing(model, ranks)) << ranks;
}

TEST(Fsdp2RanksByOwnership, AreOneGroupWhereEverythingDivides) {
    const auto groups = fsdp2_ranks_by_ownership(with_shapes({{8, 2}, {16}}), 8);
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups.front().size(), 8U);
}

}  // namespace
}  // namespace zeroplan
