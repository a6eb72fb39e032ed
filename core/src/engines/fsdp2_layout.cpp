#include "engines/fsdp2_layout.hpp"

#include <algorithm>
#include <map>

namespace zeroplan {

RowShard row_shard(const Parameter& parameter, std::uint64_t ranks, std::uint64_t rank) {
    const std::uint64_t rows = parameter.shape.empty() ? 1 : parameter.shape.front();
    const std::uint64_t width = rows == 0 ? 0 : parameter.numel / rows;
    const std::uint64_t chunk = (rows + ranks - 1) / ranks;
    const std::uint64_t begin = std::min(rows, rank * chunk), end = std::min(rows, begin + chunk);
    RowShard shard{chunk * width, (end - begin) * width, parameter.shape};
    if (!shard.shape.empty()) shard.shape.front() = end - begin;
    return shard;
}

ShardLayout fsdp2_layout(const ModelSpec& model, const TorchUnits& units, std::uint64_t ranks) {
    ShardLayout layout{.shard_group = ranks, .units = {}};
    for (const TorchUnit& unit : units.units) {
        UnitLayout entry{.name = unit.name, .block = 0, .parameters = {}, .also_gathers = {}};
        for (const std::uint32_t p : unit.parameters) {
            entry.parameters.push_back({p, entry.padded_numel});
            entry.numel += model.parameters[p].numel;
            entry.padded_numel += row_shard(model.parameters[p], ranks, 0).padded * ranks;
        }
        layout.units.push_back(std::move(entry));
    }
    return layout;
}

std::vector<std::vector<std::uint64_t>> fsdp2_ranks_by_ownership(const ModelSpec& model,
                                                                 std::uint64_t ranks) {
    std::map<std::vector<std::uint64_t>, std::vector<std::uint64_t>> groups;
    bool even = true;
    for (const Parameter& parameter : model.parameters)
        even = even && (parameter.shape.empty() || parameter.shape.front() % ranks == 0);
    if (even) {
        std::vector<std::uint64_t> all(ranks);
        for (std::uint64_t r = 0; r < ranks; ++r) all[r] = r;
        return {all};
    }
    for (std::uint64_t r = 0; r < ranks; ++r) {
        std::vector<std::uint64_t> owned;
        for (const Parameter& parameter : model.parameters)
            if (!parameter.shared_with) owned.push_back(row_shard(parameter, ranks, r).owned);
        groups[std::move(owned)].push_back(r);
    }
    std::vector<std::vector<std::uint64_t>> result;
    for (auto& [owned, members] : groups) result.push_back(std::move(members));
    std::sort(result.begin(), result.end());
    return result;
}

std::vector<RankRange> fsdp2_world_ranks(const std::vector<std::uint64_t>& members, std::uint64_t group,
                                         std::uint64_t tensor_parallel, std::uint64_t world) {
    if (members.size() == group) return {{0, world - 1}};
    std::vector<RankRange> ranges;
    for (std::uint64_t start = 0; start < world; start += group * tensor_parallel)
        for (const std::uint64_t member : members) {
            const std::uint64_t first = start + member * tensor_parallel, last = first + tensor_parallel - 1;
            if (!ranges.empty() && ranges.back().last + 1 == first)
                ranges.back().last = last;
            else
                ranges.push_back({first, last});
        }
    return ranges;
}

}  // namespace zeroplan
