#include "zeroplan/step_collectives.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "cost/bus_factor.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan {
namespace {

/// "tree", "protocol ll" or "ring with protocol ll"
std::string words_of(const CollectiveChoice& choice) {
    const std::string algorithm(choice.algorithm ? to_string(*choice.algorithm) : "");
    if (!choice.protocol) return algorithm;
    return fmt::format("{}{}protocol {}", algorithm, algorithm.empty() ? "" : " with ",
                       to_string(*choice.protocol));
}

struct Runs {
    std::uint64_t count = 0;
    bool message = false;
};

std::map<std::uint32_t, Runs> runs_of(const TimedProgram& program) {
    std::map<std::uint32_t, Runs> runs;
    for (const TimedSection& section : program.sections)
        for (const TimedNode& node : section.nodes) {
            if (node.collective == no_collective) continue;
            Runs& of = runs[node.collective];
            of.count += section.repeat;
            of.message = node.transfer == TransferSide::send;
        }
    return runs;
}

/// By section: the collective that an operation is, or none.
std::vector<std::map<OperationId, std::uint32_t>> collectives_of_operations(const TimedProgram& program) {
    std::vector<std::map<OperationId, std::uint32_t>> result;
    for (const TimedSection& section : program.sections) {
        auto& of = result.emplace_back();
        for (const TimedItem& item : section.items)
            if (const std::uint32_t c = section.nodes[item.node].collective; c != no_collective)
                of[item.operation] = c;
    }
    return result;
}

/// Repetitions of a section that the time line leaves out, and since when it lists those before them.
struct LeftOut {
    double listed_from_s = 0, from_s = 0, to_s = 0;
};

std::vector<LeftOut> left_out(const StepTimeline& timeline) {
    struct Listed {
        std::uint64_t iteration = 0;
        double from_s = 0, until_s = 0;
    };
    std::map<std::uint32_t, Listed> sections;
    std::map<std::uint32_t, LeftOut> gaps;
    for (const TimedOperation& timed : timeline.operations) {
        const auto [entry, is_new] =
            sections.try_emplace(timed.section, Listed{timed.iteration, timed.start_s, timed.end_s});
        Listed& listed = entry->second;
        if (!is_new && timed.iteration > listed.iteration + 1)
            gaps[timed.section] = {listed.from_s, listed.until_s, timed.start_s};
        if (const auto gap = gaps.find(timed.section); gap != gaps.end()) {
            gap->second.to_s = std::min(gap->second.to_s, timed.start_s);
        } else {
            listed.iteration = timed.iteration;
            listed.from_s = std::min(listed.from_s, timed.start_s);
            listed.until_s = std::max(listed.until_s, timed.end_s);
        }
    }
    std::vector<LeftOut> result;
    for (const auto& [section, gap] : gaps)
        if (gap.to_s > gap.from_s && gap.from_s > gap.listed_from_s) result.push_back(gap);
    return result;
}

/// Mean of what the changes add up to between two moments.
LinkLoadPoint mean_load(const std::map<double, LinkLoadPoint>& changes, double from_s, double to_s) {
    LinkLoadPoint now, mean;
    double since = from_s;
    for (const auto& [moment, change] : changes) {
        const double until = std::clamp(moment, from_s, to_s);
        const double share = (until - since) / (to_s - from_s);
        mean.intra_node_bytes_per_s += share * now.intra_node_bytes_per_s;
        mean.nic_bytes_per_s += share * now.nic_bytes_per_s;
        since = until;
        now.intra_node_bytes_per_s += change.intra_node_bytes_per_s;
        now.nic_bytes_per_s += change.nic_bytes_per_s;
    }
    return mean;
}

}  // namespace

std::vector<StepCollective> step_collectives(const Plan& plan, std::uint32_t rank_group) {
    const std::uint32_t number = plan.rank_groups[rank_group].program;
    const TimedProgram program = time_program(plan, number);
    const GroupSizes sizes = group_sizes(plan.scenario.training, layout_of(plan, number).shard_group);
    std::vector<StepCollective> result;
    for (const auto& [index, runs] : runs_of(program)) {
        const TimedCollective& collective = program.collectives[index];
        const std::uint64_t ranks =
            runs.message ? 2 : group_placement(collective.group, sizes, plan.scenario.cluster).ranks;
        const double seconds = collective.cost.seconds();
        const double factor = runs.message ? 1 : bus_factor(collective.kind, ranks);
        result.push_back({.kind = runs.message ? "send" : std::string(to_string(collective.kind)),
                          .group = collective.group,
                          .ranks = ranks,
                          .count = runs.count,
                          .cost = collective.cost,
                          .bus_bytes_per_s = seconds > 0 ? factor * collective.cost.bytes / seconds : 0});
    }
    std::stable_sort(result.begin(), result.end(), [](const StepCollective& a, const StepCollective& b) {
        const auto total = [](const StepCollective& c) {
            return static_cast<double>(c.count) * c.cost.seconds();
        };
        return total(a) > total(b);
    });
    return result;
}

std::vector<Warning> forced_choice_warnings(const Plan& plan) {
    const CollectiveChoice& choice = plan.scenario.cluster.nccl;
    if (!choice.algorithm && !choice.protocol) return {};
    bool any = false;
    const auto obeys = [&](const StepCollective& c) {
        return (!choice.algorithm || c.cost.algorithm == *choice.algorithm) &&
               (!choice.protocol || c.cost.protocol == *choice.protocol);
    };
    for (std::uint32_t g = 0; g < plan.rank_groups.size(); ++g) {
        const std::vector<StepCollective> collectives = step_collectives(plan, g);
        if (std::any_of(collectives.begin(), collectives.end(), obeys)) return {};
        any = any || !collectives.empty();
    }
    if (!any) return {};
    return {{"nccl_choice_without_effect",
             fmt::format(
                 "cluster.nccl forces {}, which none of the step's collectives can run with; all run "
                 "as NCCL chooses (all-gathers and reduce-scatters can be rings, NVLS on one node, PAT with "
                 "one rank a node, and what switches do with cluster.inter_node.sharp)",
                 words_of(choice))}};
}

std::vector<LinkLoadPoint> link_load_over_time(const Plan& plan, std::uint32_t rank_group,
                                               const StepTimeline& timeline) {
    const TimedProgram program = time_program(plan, plan.rank_groups[rank_group].program);
    const auto collective_of = collectives_of_operations(program);
    std::map<double, LinkLoadPoint> changes;
    for (const TimedOperation& timed : timeline.operations) {
        const auto found = collective_of[timed.section].find(timed.operation);
        if (found == collective_of[timed.section].end()) continue;
        const CollectiveCost& cost = program.collectives[found->second].cost;
        const double start = std::min(timed.start_s + cost.start_s(), timed.end_s);
        if (!(timed.end_s > start) || !(cost.unit_bytes > 0)) continue;
        const double units_per_s = cost.unit_bytes / (timed.end_s - start);
        for (const auto& [moment, sign] : {std::pair{start, 1.0}, std::pair{timed.end_s, -1.0}}) {
            LinkLoadPoint& change = changes[moment];
            (cost.on_bridge ? change.bridge_bytes_per_s : change.intra_node_bytes_per_s) +=
                sign * cost.intra_weight * units_per_s;
            change.nic_bytes_per_s += sign * cost.nic_weight * units_per_s;
        }
    }
    for (const LeftOut& gap : left_out(timeline)) {
        const LinkLoadPoint mean = mean_load(changes, gap.listed_from_s, gap.from_s);
        for (const auto& [moment, sign] : {std::pair{gap.from_s, 1.0}, std::pair{gap.to_s, -1.0}}) {
            changes[moment].intra_node_bytes_per_s += sign * mean.intra_node_bytes_per_s;
            changes[moment].nic_bytes_per_s += sign * mean.nic_bytes_per_s;
        }
    }
    std::vector<LinkLoadPoint> points;
    LinkLoadPoint now;
    for (const auto& [moment, change] : changes) {
        now.time_s = moment;
        now.intra_node_bytes_per_s =
            std::max(0.0, now.intra_node_bytes_per_s + change.intra_node_bytes_per_s);
        now.nic_bytes_per_s = std::max(0.0, now.nic_bytes_per_s + change.nic_bytes_per_s);
        now.bridge_bytes_per_s = std::max(0.0, now.bridge_bytes_per_s + change.bridge_bytes_per_s);
        points.push_back(now);
    }
    if (!points.empty()) points.back() = {.time_s = points.back().time_s};
    return points;
}

}  // namespace zeroplan
