#include <algorithm>
#include <map>
#include <tuple>
#include <variant>

#include "cost/group_shape.hpp"
#include "zeroplan/leaf_crossing.hpp"
#include "zeroplan/rank_classes.hpp"

namespace zeroplan {
namespace {

using Colours = std::vector<std::uint32_t>;  ///< by rank

/// Numbers things in the order in which they are met first.
template <typename Key>
class Numbering {
public:
    std::uint32_t number(const Key& key) {
        return numbers_.try_emplace(key, static_cast<std::uint32_t>(numbers_.size())).first->second;
    }
    std::size_t size() const { return numbers_.size(); }

private:
    std::map<Key, std::uint32_t> numbers_;
};

/// What a rank is of its own.
struct Rank {
    std::uint32_t program = 0;
    double compute = 1, gpu_link = 1, nic = 1;
    std::uint64_t leaf_neighbours = 0;
    auto operator<=>(const Rank&) const = default;
};

std::vector<Rank> ranks_of(const Plan& plan, const WhatIf& what_if) {
    const ClusterSpec& cluster = plan.scenario.cluster;
    std::vector<Rank> ranks(cluster.gpus_used);
    for (const RankGroup& group : plan.rank_groups)
        for (const RankRange& range : group.ranks)
            for (std::uint64_t r = range.first; r <= range.last && r < ranks.size(); ++r)
                ranks[r].program = group.program;
    for (const Straggler& straggler : what_if.stragglers) ranks.at(straggler.rank).compute = straggler.factor;
    for (const SlowLink& link : what_if.slow_links) {
        if (link.kind == SlowLinkKind::gpu) ranks.at(link.index).gpu_link *= link.factor;
        if (link.kind == SlowLinkKind::nic) ranks.at(link.index).nic *= link.factor;
        if (link.kind != SlowLinkKind::node) continue;
        const std::uint64_t first = link.index * cluster.gpus_per_node;
        for (std::uint64_t r = first; r < first + cluster.gpus_per_node && r < ranks.size(); ++r)
            ranks[r].nic *= link.factor;
    }
    return ranks;
}

/// By GroupKind: whether any collective of a step runs in such groups.
std::array<bool, group_kind_count> used_groups(const Plan& plan) {
    std::array<bool, group_kind_count> used{};
    for (const StepProgram& program : plan.programs)
        for (const Section& section : program.step)
            for (const Operation& operation : section.operations)
                if (const auto* collective = std::get_if<Collective>(&operation.body))
                    used[static_cast<std::size_t>(collective->group)] = true;
    return used;
}

class Refinement {
public:
    Refinement(const Plan& plan, const WhatIf& what_if, const std::vector<NodeSite>& nodes)
        : ranks_(ranks_of(plan, what_if)), world_(ranks_.size()) {
        const TrainingConfig& training = plan.scenario.training;
        const GroupSizes sizes = group_sizes(training, plan.layout.shard_group);
        stage_ = std::max<std::uint64_t>(1, world_ / sizes.pipeline);
        const std::array<bool, group_kind_count> used = used_groups(plan);
        for (std::size_t kind = 0; kind < group_kind_count; ++kind) {
            if (!used[kind]) continue;  // nobody waits in these
            const auto group = static_cast<GroupKind>(kind);
            // Groups lie inside one pipeline stage, so everybody means the stage.
            const GroupShape shape = group_shape(group, sizes, group == GroupKind::world ? stage_ : world_);
            for (std::uint64_t r = 0; r < world_; ++r) group_of_[kind].push_back(shape.group_of(r));
        }
        stand_on(nodes, plan.scenario.cluster.gpus_per_node);
        colour_of_their_own();
        while (refine()) {
        }
    }

    RankClasses result() const {
        RankClasses result;
        result.classes.resize(colour_count_);
        std::vector<bool> known(colour_count_, false);
        Numbering<std::pair<std::size_t, std::uint32_t>> communicators;
        for (std::uint64_t r = 0; r < world_; ++r) {
            AlikeRanks& own = result.classes[colours_[r]];
            if (!own.ranks.empty() && own.ranks.back().last + 1 == r)
                own.ranks.back().last = r;
            else
                own.ranks.push_back({r, r});
            if (known[colours_[r]]) continue;
            known[colours_[r]] = true;
            describe(own, r);
            for (std::size_t kind = 0; kind < group_kind_count; ++kind) {
                own.communicator[kind] =
                    communicators.number({kind, group_of_[kind].empty() ? 0 : group_colours_[kind][r]});
                if (own.communicator[kind] == result.communicators.size())
                    result.communicators.push_back({static_cast<GroupKind>(kind), {}, 1, 1, {}});
                add_member(result.communicators[own.communicator[kind]], colours_[r], own);
            }
        }
        if (!leaf_of_.empty()) add_sites(result);
        return result;
    }

private:
    void stand_on(const std::vector<NodeSite>& nodes, std::uint64_t gpus_per_node) {
        gpus_per_node_ = gpus_per_node;
        if (nodes.empty()) {
            geometry_of_.fill(Colours(world_, 0));
            return;
        }
        for (std::uint64_t r = 0; r < world_; ++r) {
            const NodeSite& node = nodes.at(r / gpus_per_node);
            leaf_of_.push_back(node.leaf);
            ranks_[r].leaf_neighbours = node.neighbours;
        }
        group_of_[group_kind_count] = leaf_of_;
        for (std::size_t kind = 0; kind < group_kind_count; ++kind)
            if (!group_of_[kind].empty()) geometry_of_[kind] = geometries(kind);
        geometry_of_[group_kind_count].assign(world_, 0);
    }

    using Sites = std::map<std::uint64_t, CommunicatorSite>;  ///< by group
    Sites sites(std::size_t kind) const {
        Sites result;
        std::map<std::uint64_t, std::uint64_t> last_node;
        for (std::uint64_t r = 0; r < world_; ++r) {
            CommunicatorSite& site = result[group_of_[kind][r]];
            const std::uint64_t node = r / gpus_per_node_;
            if (site.ranks++ == 0 || last_node[group_of_[kind][r]] != node)
                site.leaves.push_back(leaf_of_[r]);
            last_node[group_of_[kind][r]] = node;
        }
        return result;
    }

    /// By rank: a number for how often the ring of its group leaves one leaf, another, …
    Colours geometries(std::size_t kind) const {
        CollectiveCost ring;
        ring.algorithm = CollectiveAlgorithm::ring;
        ring.nic_weight = 1;
        Numbering<std::vector<double>> numbers;
        std::map<std::uint64_t, std::uint32_t> number_of_group;
        for (const auto& [group, site] : sites(kind)) {
            std::vector<double> leaving;
            for (const auto& [leaf, units] : leaf_crossing(ring, site.leaves, site.ranks).up)
                leaving.push_back(units);
            std::sort(leaving.begin(), leaving.end());
            number_of_group[group] = numbers.number(leaving);
        }
        Colours result;
        for (std::uint64_t r = 0; r < world_; ++r) result.push_back(number_of_group[group_of_[kind][r]]);
        return result;
    }

    void add_sites(RankClasses& result) const {
        for (std::uint64_t r = 0; r < world_; ++r)
            result.classes[colours_[r]].leaves.push_back(
                {leaf_of_[r], leaf_of_[next_of(r)], leaf_of_[previous_of(r)]});
        for (std::size_t kind = 0; kind < group_kind_count; ++kind) {
            if (group_of_[kind].empty()) continue;
            const Sites all = sites(kind);
            std::map<std::uint64_t, bool> added;
            for (std::uint64_t r = 0; r < world_; ++r) {
                const std::uint64_t group = group_of_[kind][r];
                if (added[group]) continue;
                added[group] = true;
                const std::uint32_t number = result.classes[colours_[r]].communicator[kind];
                result.communicators[number].sites.push_back(all.at(group));
            }
        }
    }

    void colour_of_their_own() {
        Numbering<Rank> numbers;
        for (const Rank& rank : ranks_) colours_.push_back(numbers.number(rank));
        colour_count_ = numbers.size();
    }

    /// By rank: a number for the colours of all members of its group, and its geometry.
    Colours colours_of_groups(std::size_t kind) const {
        using Members = std::map<std::uint32_t, std::uint64_t>;  // colour: how many
        const std::vector<std::uint64_t>& group_of = group_of_[kind];
        std::map<std::uint64_t, std::pair<std::uint32_t, Members>> members;
        for (std::uint64_t r = 0; r < world_; ++r) {
            auto& [geometry, colours] = members[group_of[r]];
            geometry = geometry_of_[kind][r];
            ++colours[colours_[r]];
        }
        Numbering<std::pair<std::uint32_t, Members>> numbers;
        std::map<std::uint64_t, std::uint32_t> number_of_group;
        for (const auto& [group, key] : members) number_of_group[group] = numbers.number(key);
        Colours result;
        for (std::uint64_t r = 0; r < world_; ++r) result.push_back(number_of_group[group_of[r]]);
        return result;
    }

    /// False once nothing changes any more.
    bool refine() {
        using Groups = std::array<std::uint32_t, group_kind_count + 1>;
        using Key = std::tuple<std::uint32_t, Groups, std::uint32_t, std::uint32_t>;
        for (std::size_t kind = 0; kind <= group_kind_count; ++kind)
            if (!group_of_[kind].empty()) group_colours_[kind] = colours_of_groups(kind);
        Numbering<Key> numbers;
        Colours next;
        for (std::uint64_t r = 0; r < world_; ++r) {
            Groups groups{};
            for (std::size_t kind = 0; kind <= group_kind_count; ++kind)
                if (!group_colours_[kind].empty()) groups[kind] = group_colours_[kind][r];
            next.push_back(
                numbers.number({colours_[r], groups, colours_[next_of(r)], colours_[previous_of(r)]}));
        }
        const bool finer = numbers.size() > colour_count_;
        colours_ = std::move(next);
        colour_count_ = numbers.size();
        return finer;
    }

    std::uint64_t next_of(std::uint64_t rank) const { return (rank + stage_) % world_; }
    std::uint64_t previous_of(std::uint64_t rank) const { return (rank + world_ - stage_) % world_; }

    void describe(AlikeRanks& own, std::uint64_t rank) const {
        own.program = ranks_[rank].program;
        own.compute_factor = ranks_[rank].compute;
        own.gpu_link_factor = ranks_[rank].gpu_link;
        own.nic_factor = ranks_[rank].nic;
        own.next_stage = colours_[next_of(rank)];
        own.previous_stage = colours_[previous_of(rank)];
    }

    static void add_member(ClassCommunicator& communicator, std::uint32_t index, const AlikeRanks& own) {
        communicator.classes.push_back(index);
        communicator.least_gpu_link_factor =
            std::min(communicator.least_gpu_link_factor, own.gpu_link_factor);
        communicator.least_nic_factor = std::min(communicator.least_nic_factor, own.nic_factor);
    }

    std::vector<Rank> ranks_;
    std::uint64_t world_, stage_ = 1;
    std::uint64_t gpus_per_node_ = 1;
    std::vector<std::uint64_t> leaf_of_;  ///< by rank; empty without leaf switches
    /// By GroupKind, and last the leaf switches; by rank.
    std::array<std::vector<std::uint64_t>, group_kind_count + 1> group_of_;
    std::array<Colours, group_kind_count + 1> geometry_of_, group_colours_;
    Colours colours_;
    std::size_t colour_count_ = 0;
};

}  // namespace

RankClasses rank_classes(const Plan& plan, const WhatIf& what_if, const std::vector<NodeSite>& nodes) {
    return Refinement(plan, what_if, nodes).result();
}

}  // namespace zeroplan
