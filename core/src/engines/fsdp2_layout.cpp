#include "engines/fsdp2_layout.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace zeroplan {
namespace {

std::uint64_t leading_dimension(const Parameter& parameter) {
    return parameter.shape.empty() ? 1 : parameter.shape.front();
}

bool divides_evenly(const ModelSpec& model, std::uint64_t ranks) {
    return std::all_of(model.parameters.begin(), model.parameters.end(), [ranks](const Parameter& p) {
        return p.shape.empty() || p.shape.front() % ranks == 0;
    });
}

}  // namespace

RowShard row_shard(const Parameter& parameter, std::uint64_t ranks, std::uint64_t rank) {
    const std::uint64_t rows = leading_dimension(parameter);
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
    // Chunks go to the ranks in order: what a rank owns changes only behind a parameter's last whole chunk,
    // and behind the rest of its rows.
    std::set<std::uint64_t> starts{0};
    if (!divides_evenly(model, ranks))
        for (const Parameter& parameter : model.parameters) {
            const std::uint64_t rows = leading_dimension(parameter);
            if (parameter.shared_with || parameter.numel == 0) continue;
            const std::uint64_t chunk = (rows + ranks - 1) / ranks;
            starts.insert(rows / chunk);
            if (rows % chunk != 0) starts.insert(rows / chunk + 1);
        }
    starts.erase(starts.lower_bound(ranks), starts.end());
    starts.insert(ranks);
    std::vector<std::vector<std::uint64_t>> result;
    for (auto start = starts.begin(); *start != ranks; ++start) {
        std::vector<std::uint64_t>& members = result.emplace_back(*std::next(start) - *start);
        std::iota(members.begin(), members.end(), *start);
    }
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
