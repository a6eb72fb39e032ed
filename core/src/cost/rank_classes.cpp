#include "zeroplan/rank_classes.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <variant>

#include "cost/group_shape.hpp"

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
    Refinement(const Plan& plan, const WhatIf& what_if)
        : ranks_(ranks_of(plan, what_if)), world_(ranks_.size()), used_(used_groups(plan)) {
        const TrainingConfig& training = plan.scenario.training;
        const GroupSizes sizes = group_sizes(training, plan.layout.shard_group);
        stage_ = std::max<std::uint64_t>(1, world_ / sizes.pipeline);
        for (std::size_t kind = 0; kind < group_kind_count; ++kind) {
            const auto group = static_cast<GroupKind>(kind);
            // Groups lie inside one pipeline stage, so everybody means the stage.
            shapes_[kind] = group_shape(group, sizes, group == GroupKind::world ? stage_ : world_);
        }
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
                    communicators.number({kind, used_[kind] ? group_colours_[kind][r] : 0});
                if (own.communicator[kind] == result.communicators.size())
                    result.communicators.push_back({static_cast<GroupKind>(kind), {}, 1, 1});
                add_member(result.communicators[own.communicator[kind]], colours_[r], own);
            }
        }
        return result;
    }

private:
    void colour_of_their_own() {
        Numbering<Rank> numbers;
        for (const Rank& rank : ranks_) colours_.push_back(numbers.number(rank));
        colour_count_ = numbers.size();
    }

    /// By rank: a number for the colours of all members of its group.
    Colours colours_of_groups(const GroupShape& shape) const {
        std::map<std::uint64_t, std::map<std::uint32_t, std::uint64_t>> members;  // group: colour: how many
        for (std::uint64_t r = 0; r < world_; ++r) ++members[shape.group_of(r)][colours_[r]];
        Numbering<std::map<std::uint32_t, std::uint64_t>> numbers;
        std::map<std::uint64_t, std::uint32_t> number_of_group;
        for (const auto& [group, colours] : members) number_of_group[group] = numbers.number(colours);
        Colours result;
        for (std::uint64_t r = 0; r < world_; ++r) result.push_back(number_of_group[shape.group_of(r)]);
        return result;
    }

    /// False once nothing changes any more.
    bool refine() {
        using Key = std::tuple<std::uint32_t, std::array<std::uint32_t, group_kind_count>, std::uint32_t,
                               std::uint32_t>;
        for (std::size_t kind = 0; kind < group_kind_count; ++kind)
            if (used_[kind]) group_colours_[kind] = colours_of_groups(shapes_[kind]);
        Numbering<Key> numbers;
        Colours next;
        for (std::uint64_t r = 0; r < world_; ++r) {
            std::array<std::uint32_t, group_kind_count> groups{};
            for (std::size_t kind = 0; kind < group_kind_count; ++kind)
                if (used_[kind]) groups[kind] = group_colours_[kind][r];
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
    std::array<bool, group_kind_count> used_;  ///< in groups of other kinds nobody waits
    std::array<GroupShape, group_kind_count> shapes_;
    Colours colours_;
    std::size_t colour_count_ = 0;
    std::array<Colours, group_kind_count> group_colours_;
};

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
    return Refinement(plan, what_if).result();
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
