#include "cost/step_costs.hpp"

namespace zeroplan {
namespace {

/// What makes two runs of one operator differ in cost: phase, accumulation, and which gradients are wanted
/// (the number of arguments tells).
constexpr std::size_t argument_slots = 16;
constexpr std::size_t variants = 3 * 2 * argument_slots;

std::size_t variant(const Compute& compute) {
    const auto phase = static_cast<std::size_t>(compute.phase);
    const std::size_t adds = compute.accumulate || compute.accumulate_after_first ? 1 : 0;
    return (phase * 2 + adds) * argument_slots + compute.arguments.size();
}

}  // namespace

StepCosts::StepCosts(const Plan& plan, std::uint32_t program, const WorkScale& scale)
    : plan_(plan),
      rank_model_(model_of(plan, program)),
      layout_(layout_of(plan, program)),
      training_(plan.scenario.training),
      groups_(group_sizes(training_, layout_.shard_group)),
      stage_ranks_(plan.scenario.cluster.gpus_used / training_.pipeline_parallel),
      model_(rank_model_, training_, plan.scenario.cluster, layout_, plan.programs[program], scale) {
    training_.sequence_length = sequence_length_of(plan, program);
    for (const RankGroup& group : plan.rank_groups)
        if (group.program == program && !group.ranks.empty()) first_rank_ = group.ranks.front().first;
    for (const BlockKind& kind : rank_model_.block_kinds)
        compute_times_.emplace_back(kind.operators.size() * variants, WorkTime{.seconds = -1});
}

WorkTime StepCosts::time(const Compute& compute) {
    if (compute.arguments.size() >= argument_slots) return model_.cost(compute).time();
    const std::uint32_t kind = rank_model_.blocks[compute.block].kind;
    WorkTime& known = compute_times_[kind][compute.op * variants + variant(compute)];
    if (known.seconds < 0) known = model_.cost(compute).time();
    return known;
}

std::uint32_t StepCosts::collective(const Collective& collective) {
    const bool in_place = collective.send.buffer == collective.receive.buffer;
    const auto [place, is_new] = collective_index_.try_emplace(
        {collective.kind, collective.group, collective.dtype, collective.elements, in_place},
        static_cast<std::uint32_t>(collectives_.size()));
    if (!is_new) return place->second;

    const ClusterSpec& cluster = plan_.scenario.cluster;
    const Bytes bytes = collective.elements * Bytes{bytes_per_element(collective.dtype)};
    const GroupPlacement placement = group_placement(collective.group, groups_, cluster);
    const bool forced = (cluster.nccl.algorithm || cluster.nccl.protocol) &&
                        can_force(collective.kind, placement, cluster, cluster.nccl);
    CollectiveCost cost = zeroplan::collective_cost(collective.kind, bytes, placement, cluster,
                                                    forced ? cluster.nccl : CollectiveChoice{});
    if (placement.ranks == 1 && !in_place)  // one rank alone copies from one buffer to the other
        cost.transfer_s = model_.copy_seconds(cost.bytes);
    collectives_.push_back({collective.group, collective.kind, cost});
    return place->second;
}

/// To the same place in the neighbouring stage.
std::uint32_t StepCosts::message(const Transfer& transfer) {
    const auto [place, is_new] =
        message_index_.try_emplace({transfer.dtype, transfer.elements, transfer.to_next},
                                   static_cast<std::uint32_t>(collectives_.size()));
    if (!is_new) return place->second;
    const ClusterSpec& cluster = plan_.scenario.cluster;
    const std::uint64_t world = cluster.gpus_used;
    const std::uint64_t peer =
        (first_rank_ + (transfer.to_next ? stage_ranks_ : world - stage_ranks_)) % world;
    const bool across = first_rank_ / cluster.gpus_per_node != peer / cluster.gpus_per_node;
    const Bytes bytes = transfer.elements * Bytes{bytes_per_element(transfer.dtype)};
    collectives_.push_back(
        {GroupKind::world, CollectiveKind::broadcast, message_cost(bytes, across, cluster)});
    return place->second;
}

}  // namespace zeroplan
