#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <variant>

#include "cost/group_shape.hpp"
#include "cost/link_colours.hpp"
#include "cost/numbering.hpp"
#include "zeroplan/rank_classes.hpp"

namespace zeroplan {
namespace {

/// What a rank is of its own.
struct Rank {
    std::uint32_t program = 0;
    double compute = 1, gpu_link = 1, nic = 1;
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

bool has_one_rank_a_node(const Plan& plan, GroupKind group) {
    const GroupSizes sizes = group_sizes(plan.scenario.training, plan.layout.shard_group);
    const GroupPlacement placement = group_placement(group, sizes, plan.scenario.cluster);
    return placement.ranks == placement.nodes;
}

/// By GroupKind: in which patterns collectives of a step may run in such groups.
using Patterns = std::array<std::set<CrossingPattern>, group_kind_count>;
Patterns used_patterns(const Plan& plan) {
    Patterns used;
    for (const StepProgram& program : plan.programs)
        for (const Section& section : program.step)
            for (const Operation& operation : section.operations)
                if (const auto* collective = std::get_if<Collective>(&operation.body)) {
                    const bool pairs = collective->kind == CollectiveKind::all_to_all;
                    std::set<CrossingPattern>& patterns = used[static_cast<std::size_t>(collective->group)];
                    patterns.insert(pairs ? CrossingPattern::pairs : CrossingPattern::ring);
                    if (collective->kind == CollectiveKind::all_reduce)
                        patterns.insert(CrossingPattern::trees);
                    else if (!pairs && has_one_rank_a_node(plan, collective->group))
                        patterns.insert(CrossingPattern::powers_of_two);
                    if (!pairs && plan.scenario.cluster.inter_node.sharp)
                        patterns.insert(
                            crossing_pattern(CollectiveAlgorithm::collnet_direct, collective->kind));
                }
    return used;
}

class Refinement {
public:
    Refinement(const Plan& plan, const WhatIf& what_if, const JobSites& sites)
        : ranks_(ranks_of(plan, what_if)),
          world_(ranks_.size()),
          gpus_per_node_(plan.scenario.cluster.gpus_per_node),
          sites_(sites),
          links_(sites.routes, sites.others) {
        const TrainingConfig& training = plan.scenario.training;
        const GroupSizes sizes = group_sizes(training, plan.layout.shard_group);
        stage_ = std::max<std::uint64_t>(1, world_ / sizes.pipeline);
        const Patterns used = used_patterns(plan);
        for (std::size_t kind = 0; kind < group_kind_count; ++kind) {
            if (used[kind].empty()) continue;  // nobody waits in these
            const auto group = static_cast<GroupKind>(kind);
            // Everybody means the stage: only embedding groups reach into another one.
            const GroupShape shape = group_shape(group, sizes, group == GroupKind::world ? stage_ : world_);
            for (std::uint64_t r = 0; r < world_; ++r) group_of_[kind].push_back(shape.group_of(r));
        }
        for (Colours& geometry : geometry_of_) geometry.assign(world_, 0);
        if (sites_.routes.blocks()) stand_on_fabric(used);
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
        if (sites_.routes.blocks()) add_sites(result);
        return result;
    }

private:
    FabricPort port(std::uint64_t rank) const {
        return {sites_.nodes.at(rank / gpus_per_node_), rank % gpus_per_node_};
    }

    void stand_on_fabric(const Patterns& used) {
        for (std::size_t kind = 0; kind < group_kind_count; ++kind) {
            if (group_of_[kind].empty()) continue;
            groups_[kind] = sites(kind);
            for (const auto& [group, site] : groups_[kind])
                for (const CrossingPattern pattern : used[kind]) add_sender(kind, group, pattern, site);
        }
        if (stage_ == world_) return;
        for (std::uint64_t r = 0; r < world_; ++r)
            for (const std::uint64_t to : {next_of(r), previous_of(r)})
                add_sender(group_kind_count, r, std::nullopt,
                           {{{port(r).node, {port(r).rail}}, {port(to).node, {port(to).rail}}}, 2});
    }

    /// No pattern: a message from the first node to the second.
    using Pattern = std::optional<CrossingPattern>;

    Crossing crossing(const Pattern& pattern, const CommunicatorSite& site) const {
        if (pattern) return fabric_crossing(*pattern, site, sites_.routes);
        const GroupNode &from = site.nodes.front(), &to = site.nodes.back();
        Crossing message;
        sites_.routes.add_route(message, {from.node, from.rails.front()}, {to.node, to.rails.front()}, 1);
        return message;
    }

    /// Groups that cross the same links in the same way are one sender.
    void add_sender(std::size_t kind, std::uint64_t group, const Pattern& pattern,
                    const CommunicatorSite& site) {
        const auto next = static_cast<std::uint32_t>(senders_.size());
        const auto [place, is_new] =
            sender_of_.try_emplace({kind, pattern, as_seen_by(sites_.routes, site)}, next);
        if (is_new) {
            const Crossing crossed = crossing(pattern, site);
            if (crossed.empty()) {
                place->second = no_sender;
            } else {
                senders_.push_back({kind, {}});
                links_.add(crossed);
            }
        }
        if (place->second != no_sender) senders_[place->second].groups.push_back(group);
    }

    using Sites = std::map<std::uint64_t, CommunicatorSite>;  ///< by group
    Sites sites(std::size_t kind) const {
        Sites result;
        for (std::uint64_t r = 0; r < world_; ++r) {
            CommunicatorSite& site = result[group_of_[kind][r]];
            const FabricPort at = port(r);
            ++site.ranks;
            if (site.nodes.empty() || site.nodes.back().node != at.node) site.nodes.push_back({at.node, {}});
            site.nodes.back().rails.push_back(at.rail);
        }
        return result;
    }

    void add_sites(RankClasses& result) const {
        if (stage_ != world_)
            for (std::uint64_t r = 0; r < world_; ++r)
                result.classes[colours_[r]].ports.push_back(
                    {port(r), port(next_of(r)), port(previous_of(r))});
        for (std::size_t kind = 0; kind < group_kind_count; ++kind)
            for (const auto& [group, site] : groups_[kind]) {
                const std::uint32_t number = result.classes[colours_[group]].communicator[kind];
                result.communicators[number].sites.push_back(site);
            }
    }

    /// What tells groups and ranks apart by the links that they cross, and who else crosses these.
    void colour_links() {
        if (senders_.empty()) return;
        Numbering<std::pair<std::size_t, Colours>> numbers;
        Colours senders;
        for (const Sender& sender : senders_) {
            const Colours& of = sender.kind == group_kind_count ? colours_ : group_colours_[sender.kind];
            Colours members;
            for (const std::uint64_t group : sender.groups) members.push_back(of[group]);
            std::sort(members.begin(), members.end());
            senders.push_back(numbers.number({sender.kind, members}));
        }
        const Colours colours = links_.of_senders(senders);
        std::map<std::pair<std::size_t, std::uint64_t>, Colours> of_group;
        for (std::size_t i = 0; i < senders_.size(); ++i)
            for (const std::uint64_t group : senders_[i].groups)
                of_group[{senders_[i].kind, group}].push_back(colours[i]);
        std::array<Numbering<Colours>, group_kind_count + 1> geometries;
        for (const auto& [group, key] : of_group)
            geometry_of_[group.first][group.second] = 1 + geometries[group.first].number(key);
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
            geometry = geometry_of_[kind][group_of[r]];
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
        using Groups = std::array<std::pair<std::uint32_t, std::uint32_t>, group_kind_count>;
        using Key = std::tuple<std::uint32_t, Groups, std::uint32_t, std::uint32_t, std::uint32_t>;
        for (std::size_t kind = 0; kind < group_kind_count; ++kind)
            if (!group_of_[kind].empty()) group_colours_[kind] = colours_of_groups(kind);
        colour_links();
        Numbering<Key> numbers;
        Colours next;
        for (std::uint64_t r = 0; r < world_; ++r) {
            Groups groups{};
            for (std::size_t kind = 0; kind < group_kind_count; ++kind)
                if (!group_of_[kind].empty())
                    groups[kind] = {group_colours_[kind][r], geometry_of_[kind][group_of_[kind][r]]};
            next.push_back(numbers.number({colours_[r], groups, geometry_of_[group_kind_count][r],
                                           colours_[next_of(r)], colours_[previous_of(r)]}));
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
    std::uint64_t gpus_per_node_;
    const JobSites& sites_;
    /// Groups that cross links, in one of their patterns, or ranks that send to a neighbour in a pipeline.
    struct Sender {
        std::size_t kind = 0;               ///< GroupKind; behind them all: ranks
        std::vector<std::uint64_t> groups;  ///< the first rank of each, or those ranks
    };
    static constexpr std::uint32_t no_sender = ~0U;  ///< crosses nothing
    std::vector<Sender> senders_;
    std::map<std::tuple<std::size_t, Pattern, CommunicatorSite>, std::uint32_t> sender_of_;
    LinkColours links_;
    std::array<Sites, group_kind_count> groups_;                         ///< on a fabric that blocks
    std::array<std::vector<std::uint64_t>, group_kind_count> group_of_;  ///< by GroupKind and rank
    std::array<Colours, group_kind_count + 1> geometry_of_;              ///< by group, and last by rank
    std::array<Colours, group_kind_count> group_colours_;
    Colours colours_;
    std::size_t colour_count_ = 0;
};

}  // namespace

RankClasses rank_classes(const Plan& plan, const WhatIf& what_if, const JobSites& sites) {
    return Refinement(plan, what_if, sites).result();
}

}  // namespace zeroplan
