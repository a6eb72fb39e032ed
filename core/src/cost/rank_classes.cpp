#include "zeroplan/rank_classes.hpp"

#include <algorithm>

#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

/// What of `ranks` is also in `of`.
std::vector<RankRange> common(const std::vector<RankRange>& ranks, const std::vector<RankRange>& of) {
    std::vector<RankRange> result;
    for (const RankRange& a : ranks)
        for (const RankRange& b : of) {
            const std::uint64_t first = std::max(a.first, b.first), last = std::min(a.last, b.last);
            if (first <= last) result.push_back({first, last});
        }
    return result;
}

}  // namespace

std::uint64_t AlikeRanks::count() const {
    std::uint64_t sum = 0;
    for (const RankRange& range : ranks) sum += range.last - range.first + 1;
    return sum;
}

std::uint32_t RankClasses::class_of(std::uint64_t rank) const {
    for (std::uint32_t c = 0; c < classes.size(); ++c)
        for (const RankRange& range : classes[c].ranks)
            if (range.first <= rank && rank <= range.last) return c;
    throw Error(ErrorCode::invalid_input, "rank " + std::to_string(rank) + " is in no class");
}

RankClasses rank_classes(const Plan& plan, const WhatIf& what_if) {
    if (!blocks(fabric_of(what_if))) return rank_classes(plan, what_if, JobSites{});
    std::uint64_t background_nodes = 0;
    if (what_if.background) {
        ScenarioRequest request;
        request.text = what_if.background->scenario_json;
        background_nodes = nodes_in_use(resolve_scenario(request).cluster);
    }
    const FabricSites sites = place_jobs(what_if, nodes_in_use(plan.scenario.cluster), background_nodes);
    const FabricRoutes routes = fabric_routes(what_if, plan.scenario.cluster, sites.nodes);
    return rank_classes(plan, what_if, job_sites(routes, sites, sites.job, sites.background));
}

Plan split_rank_groups(Plan plan, const RankClasses& classes) {
    const std::uint64_t peak_rank = plan.memory.peak_rank;
    const std::uint32_t worst = plan.memory.worst_group;
    std::vector<RankGroup> groups = std::move(plan.rank_groups);
    plan.rank_groups.clear();
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
        for (const AlikeRanks& own : classes.classes) {
            RankGroup part = groups[g];
            part.ranks = common(groups[g].ranks, own.ranks);
            if (part.ranks.empty()) continue;
            const bool has_peak = !common(part.ranks, {{peak_rank, peak_rank}}).empty();
            if (g == worst && has_peak)
                plan.memory.worst_group = static_cast<std::uint32_t>(plan.rank_groups.size());
            plan.rank_groups.push_back(std::move(part));
        }
    }
    return plan;
}

}  // namespace zeroplan
