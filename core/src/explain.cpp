#include "zeroplan/explain.hpp"

#include <algorithm>

#include "deciding_peak.hpp"
#include "live_tensors.hpp"

namespace zeroplan {
namespace {

/// Twice as many ranks share the state; replicas, model parallelism and what a rank computes stay.
Scenario on_twice_the_ranks(const Scenario& scenario) {
    if (scenario.training.engine == EngineKind::single)
        throw Error(ErrorCode::not_supported, "engine single runs on one GPU");
    Scenario twice = scenario;
    TrainingConfig& training = twice.training;
    training.data_parallel = checked_product(training.data_parallel, 2, "data-parallel ranks");
    if (training.zero_stage > 0) training.shard_group = checked_product(training.shard_group, 2, "ranks");
    ClusterSpec& cluster = twice.cluster;
    cluster.gpus_used = checked_product(cluster.gpus_used, 2, "GPUs");
    cluster.nodes =
        std::max(cluster.nodes, (cluster.gpus_used + cluster.gpus_per_node - 1) / cluster.gpus_per_node);
    return twice;
}

bool same_operations(std::span<const Section> a, std::span<const Section> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Section& x, const Section& y) {
        return x.operations.size() == y.operations.size();
    });
}

/// What `twice` holds at the moment that decides `plan`, if its program is the same but for sizes; else at
/// its own peak.
PeakIngredients at_the_same_moment(const Plan& plan, const DecidingPeak& peak, const Plan& twice) {
    const std::uint32_t program = plan.rank_groups[peak.group].program;
    const bool comparable = twice.programs.size() == plan.programs.size() &&
                            same_operations(sections_of(plan.programs[program], peak.moment.phase),
                                            sections_of(twice.programs[program], peak.moment.phase));
    PeakIngredients ingredients = peak_ingredients(twice);
    if (comparable)
        ingredients.categories =
            bytes_of(twice.programs[program], live_at(twice.programs[program], peak.moment));
    return ingredients;
}

/// Shares differ from a half by padding, at most a percent of them, and by each buffer's 512 B.
Bytes tolerance(Bytes bytes, std::size_t buffers) {
    return Bytes{bytes.count() / 100} + buffers * Bytes{arena_alignment};
}

IngredientScaling compare(std::string ingredient, Bytes now, Bytes twice, std::size_t buffers) {
    IngredientScaling row{.ingredient = std::move(ingredient), .bytes = now, .on_twice = twice};
    const Bytes lost = now - std::min(now, twice), slack = tolerance(now, buffers);
    row.divided = std::min(now, 2 * lost);
    if (twice > now + slack) {
        row.scaling = Scaling::grows;
    } else if (lost == Bytes{} || (lost <= slack && now > slack)) {
        row.scaling = Scaling::constant;
        row.divided = Bytes{};
    } else if (row.divided + slack >= now) {
        row.scaling = Scaling::divided;
        row.divided = now;
    } else {
        row.scaling = Scaling::partly_divided;
    }
    return row;
}

/// How the allocator packs blocks follows no law in the ranks, so nothing of its holes counts as divided.
IngredientScaling undivided(std::string ingredient, Bytes now, Bytes twice) {
    return {.ingredient = std::move(ingredient),
            .bytes = now,
            .on_twice = twice,
            .scaling = twice > now + tolerance(now, 1) ? Scaling::grows : Scaling::constant};
}

void add_scaling(Explanation& explanation, const Plan& plan, const DecidingPeak& peak,
                 const PeakIngredients& now, const Plan& twice) {
    const PeakIngredients then = at_the_same_moment(plan, peak, twice);
    const StepProgram& program = plan.programs[plan.rank_groups[peak.group].program];
    for (const Category category : all_categories) {
        if (now.categories[category] == Bytes{} && then.categories[category] == Bytes{}) continue;
        const auto buffers =
            static_cast<std::size_t>(std::count_if(peak.live.begin(), peak.live.end(), [&](BufferId id) {
                return program.buffers[id].category == category;
            }));
        explanation.ingredients.push_back(compare(std::string(to_string(category)), now.categories[category],
                                                  then.categories[category], buffers));
    }
    explanation.ingredients.push_back(undivided("allocator_holes", now.holes, then.holes));
    explanation.ingredients.push_back(undivided("runtime", now.runtime, then.runtime));
    explanation.device_on_twice = twice.memory.overall_peak_device;
}

void add_without_scaling(Explanation& explanation, const PeakIngredients& now) {
    const auto add = [&](std::string ingredient, Bytes bytes) {
        if (bytes > Bytes{})
            explanation.ingredients.push_back({.ingredient = std::move(ingredient), .bytes = bytes});
    };
    for (const Category category : all_categories)
        add(std::string(to_string(category)), now.categories[category]);
    add("allocator_holes", now.holes);
    add("runtime", now.runtime);
}

}  // namespace

std::string_view to_string(Scaling scaling) {
    switch (scaling) {
        case Scaling::divided:
            return "divided";
        case Scaling::partly_divided:
            return "partly_divided";
        case Scaling::constant:
            return "constant";
        case Scaling::grows:
            return "grows";
    }
    return "?";
}

Explanation explain(const Plan& plan) {
    const TrainingConfig& training = plan.scenario.training;
    const DecidingPeak peak = deciding_peak(plan);
    const PeakIngredients now = peak_ingredients(plan);
    const RankGroup& group = plan.rank_groups[peak.group];
    Explanation explanation{.ranks = training.zero_stage == 0 ? training.data_parallel : training.shard_group,
                            .worst_ranks = group.ranks,
                            .live = group_live(plan, group.program, peak.live)};
    try {
        add_scaling(explanation, plan, peak, now, make_plan(on_twice_the_ranks(plan.scenario)));
    } catch (const Error& error) {
        explanation.why_not_twice = error.message();
        add_without_scaling(explanation, now);
    }
    return explanation;
}

}  // namespace zeroplan
