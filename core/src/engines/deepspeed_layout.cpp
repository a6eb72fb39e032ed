#include "engines/deepspeed_layout.hpp"

#include <algorithm>
#include <map>

#include "zeroplan/units.hpp"

namespace zeroplan {
namespace {

/// nccl_start_alignment_factor: partitions start at multiples of 4 bytes in 16-bit types.
constexpr std::uint64_t start_alignment = 2;

std::vector<std::uint32_t> trained_parameters(const ModelSpec& model) {
    std::vector<std::uint32_t> trained;
    for (std::uint32_t p = 0; p < model.parameters.size(); ++p)
        if (model.parameters[p].trainable && !model.parameters[p].shared_with) trained.push_back(p);
    return trained;
}

std::vector<std::uint32_t> dealt_in_turn(const std::vector<std::uint32_t>& parameters, std::uint64_t ranks) {
    std::vector<std::uint32_t> order;
    for (std::uint64_t r = 0; r < ranks; ++r)
        for (std::uint64_t i = r; i < parameters.size(); i += ranks) order.push_back(parameters[i]);
    return order;
}

}  // namespace

FlatGroup flat_group(const ModelSpec& model, std::uint64_t ranks, bool round_robin) {
    FlatGroup group{.ranks = ranks};
    std::vector<std::uint32_t> order = trained_parameters(model);
    if (round_robin) order = dealt_in_turn(order, ranks);
    for (const std::uint32_t p : order) {
        group.parameters.push_back({p, group.numel});
        group.numel += model.parameters[p].numel;
    }
    group.padded_numel = round_up(group.numel, start_alignment * ranks);
    return group;
}

PartitionShare partition_share(const FlatGroup& group, const ModelSpec& model, std::uint64_t rank) {
    const std::uint64_t begin = rank * group.partition(), end = begin + group.partition();
    PartitionShare share;
    auto first = std::upper_bound(group.parameters.begin(), group.parameters.end(), begin,
                                  [](std::uint64_t at, const PlacedParameter& p) { return at < p.offset; });
    if (first != group.parameters.begin()) --first;
    for (; first != group.parameters.end() && first->offset < end; ++first) {
        const std::uint64_t numel = model.parameters[first->parameter].numel;
        const std::uint64_t last = std::min(end, first->offset + numel),
                            start = std::max(begin, first->offset);
        if (last <= start) continue;
        share.parameters.push_back(first->parameter);
        share.whole_numel += numel;
        share.largest_piece = std::max(share.largest_piece, last - start);
    }
    return share;
}

std::vector<RankClass> ranks_by_share(const FlatGroup& group, const ModelSpec& model, std::size_t most) {
    using Key = std::pair<std::uint64_t, std::uint64_t>;  // whole elements, largest piece
    std::map<Key, std::vector<std::uint64_t>> by_share;
    for (std::uint64_t r = 0; r < group.ranks; ++r) {
        const PartitionShare share = partition_share(group, model, r);
        by_share[{share.whole_numel, share.largest_piece}].push_back(r);
    }
    const std::size_t together = (by_share.size() + most - 1) / most;
    std::vector<RankClass> classes;
    std::size_t position = 0;
    for (const auto& [key, members] : by_share) {
        if (position++ % together == 0) classes.push_back({.members = {}, .shares = 0});
        ++classes.back().shares;
        classes.back().representative = members.front();  // keys ascend: the last one is the largest
        // The one that overlaps most need not hold the largest piece.
        classes.back().share.largest_piece = std::max(classes.back().share.largest_piece, key.second);
        classes.back().members.insert(classes.back().members.end(), members.begin(), members.end());
    }
    for (RankClass& ranks : classes) {
        std::sort(ranks.members.begin(), ranks.members.end());
        const std::uint64_t piece = ranks.share.largest_piece;
        ranks.share = partition_share(group, model, ranks.representative);
        ranks.share.largest_piece = piece;
    }
    std::sort(classes.begin(), classes.end(),
              [](const RankClass& a, const RankClass& b) { return a.members.front() < b.members.front(); });
    return classes;
}

std::uint64_t stage3_shard_numel(std::uint64_t numel, std::uint64_t ranks) {
    return (numel + ranks - 1) / ranks;
}

ShardLayout deepspeed_layout(const ModelSpec& model, const FlatGroup& group) {
    ShardLayout layout{.shard_group = group.ranks, .units = {}};
    for (std::uint32_t p = 0; p < model.parameters.size(); ++p)
        layout.units.push_back({.name = model.parameters[p].name,
                                .parameters = {{p, 0}},
                                .numel = model.parameters[p].numel,
                                .padded_numel = model.parameters[p].numel,
                                .also_gathers = {}});
    layout.units.push_back({.name = "flat group",
                            .parameters = group.parameters,
                            .numel = group.numel,
                            .padded_numel = group.padded_numel,
                            .also_gathers = {}});
    return layout;
}

}  // namespace zeroplan
