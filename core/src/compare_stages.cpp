#include "zeroplan/compare_stages.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "deciding_peak.hpp"
#include "zeroplan/io.hpp"

namespace zeroplan {
namespace {

constexpr std::uint32_t highest_stage = 3;
/// Beyond it the sharded part is a thousandth: the curves are flat.
constexpr std::uint64_t most_gpus = 1024;

std::vector<std::uint64_t> default_counts(const ClusterSpec& cluster) {
    const bool one_node = cluster.inter_node.kind == InterNodeKind::none;
    const std::uint64_t last = one_node ? cluster.gpus_per_node : std::max(most_gpus, cluster.gpus_per_node);
    std::vector<std::uint64_t> counts;
    for (std::uint64_t count = one_node ? 1 : cluster.gpus_per_node; count <= last; count *= 2)
        counts.push_back(count);
    counts.push_back(cluster.gpus_used);
    return counts;
}

Setting number_setting(const char* pointer, std::uint64_t value) {
    return text_setting(pointer, fmt::format("{}", value), "--compare-stages");
}

std::vector<std::pair<std::string, Bytes>> named(const PeakIngredients& ingredients) {
    std::vector<std::pair<std::string, Bytes>> list;
    for (const Category category : all_categories)
        list.emplace_back(to_string(category), ingredients.categories[category]);
    list.emplace_back("allocator_holes", ingredients.holes);
    list.emplace_back("runtime", ingredients.runtime);
    return list;
}

StagePoint plan_stage(const std::string& scenario, const ClusterSpec& cluster, std::uint32_t stage,
                      std::uint64_t gpus) {
    StagePoint point{.stage = stage, .gpus = gpus};
    const std::uint64_t nodes = (gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
    try {
        const Plan plan =
            make_plan(resolve_scenario({.text = scenario,
                                        .settings = {number_setting("/training/zero_stage", stage),
                                                     number_setting("/cluster/nodes", nodes),
                                                     number_setting("/cluster/gpus_used", gpus)}}));
        point.peak_device = plan.memory.overall_peak_device;
        point.verdict = plan.memory.verdict;
        point.ingredients = named(peak_ingredients(plan));
    } catch (const Error& error) {
        point.refused = error.message();
    }
    return point;
}

std::vector<std::pair<std::string, Bytes>> grown(const StagePoint& lower, const StagePoint& higher) {
    std::vector<std::pair<std::string, Bytes>> list;
    for (std::size_t i = 0; i < higher.ingredients.size(); ++i) {
        const auto& [name, bytes] = higher.ingredients[i];
        if (bytes > lower.ingredients[i].second) list.emplace_back(name, bytes - lower.ingredients[i].second);
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return list;
}

/// Where stage `higher` takes more than stage `lower`; no GPU counts if it never does.
CostlierStage weigh(const StageComparison& comparison, std::uint32_t lower, std::uint32_t higher) {
    CostlierStage found{.lower = lower, .higher = higher};
    const std::size_t counts = comparison.gpus.size();
    for (std::size_t c = 0; c < counts; ++c) {
        const StagePoint &low = comparison.points[lower * counts + c],
                         &high = comparison.points[higher * counts + c];
        if (!low.refused.empty() || !high.refused.empty() || high.peak_device <= low.peak_device) continue;
        found.gpus.push_back(low.gpus);
        const Bytes more = high.peak_device - low.peak_device;
        if (more <= found.more) continue;
        found.more = more;
        found.worst_gpus = low.gpus;
        found.grown = grown(low, high);
    }
    return found;
}

}  // namespace

StageComparison compare_stages(const Plan& plan, std::vector<std::uint64_t> gpus) {
    const ClusterSpec& cluster = plan.scenario.cluster;
    if (gpus.empty()) gpus = default_counts(cluster);
    std::sort(gpus.begin(), gpus.end());
    gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
    StageComparison comparison{.capacity = plan.memory.capacity, .gpus = std::move(gpus)};
    const std::string scenario = scenario_json(plan.scenario);
    for (std::uint32_t stage = 0; stage <= highest_stage; ++stage)
        for (const std::uint64_t count : comparison.gpus)
            comparison.points.push_back(plan_stage(scenario, cluster, stage, count));
    for (std::uint32_t higher = 1; higher <= highest_stage; ++higher)
        for (std::uint32_t lower = higher; lower-- > 0;)
            if (CostlierStage found = weigh(comparison, lower, higher); !found.gpus.empty())
                comparison.costlier.push_back(std::move(found));
    return comparison;
}

std::vector<std::uint64_t> parse_gpu_counts(const std::string& text) {
    std::vector<std::uint64_t> counts;
    for (const char *at = text.data(), *end = at + text.size();; ++at) {
        std::uint64_t count = 0;
        const auto [stop, error] = std::from_chars(at, end, count);
        const bool valid = error == std::errc{} && count > 0 && (stop == end || *stop == ',');
        if (!valid)
            throw Error(ErrorCode::invalid_input, fmt::format("\"{}\" is no list of GPU counts", text),
                        "as in --compare-stages 8,64,512; without a list: one node and on up to 1024",
                        {"command line", "--compare-stages"});
        counts.push_back(count);
        at = stop;
        if (at == end) return counts;
    }
}

}  // namespace zeroplan
