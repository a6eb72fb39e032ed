#include "zeroplan/gui/memory_stack.hpp"

#include <algorithm>

#include "zeroplan/gui/theme.hpp"

namespace zeroplan::gui {

namespace {

std::uint64_t rank_count(const RankGroup& group) {
    std::uint64_t ranks = 0;
    for (const RankRange& range : group.ranks) ranks += range.last - range.first + 1;
    return ranks;
}

QString heading(const Plan& plan, const RankGroup& group, std::uint64_t rank) {
    const std::uint64_t per_node = std::max<std::uint64_t>(1, plan.scenario.cluster.gpus_per_node);
    QString said =
        QObject::tr("rank %1 (node %2, GPU %3)").arg(rank).arg(rank / per_node).arg(rank % per_node);
    if (const auto alike = rank_count(group); alike > 1)
        said += QObject::tr(", one of %1 alike").arg(text(format_count(alike)));
    return said;
}

QString closing(Bytes device, Bytes capacity) {
    if (device > capacity) return QObject::tr("Over the capacity by %1").arg(exact(device - capacity));
    return QObject::tr("%1 left of the capacity").arg(exact(capacity - device));
}

}  // namespace

MemoryStack memory_stack(const RankGroup& group) {
    return {group.steady.at_peak, difference(group.peak_reserved, group.steady.allocated),
            difference(group.peak_device, group.peak_reserved)};
}

OverallPeak overall_peak(const RankGroup& group) {
    OverallPeak peak{Phase::steady_step, group.peak_device};
    for (const PhaseMemory& memory : group.phases) {
        const Bytes device = memory.peak_reserved + group.runtime;
        if (memory.phase != Phase::save && device > peak.device) peak = {memory.phase, device};
    }
    return peak;
}

Description describe_rank(const Plan& plan, std::uint64_t rank, bool dark) {
    const RankGroup& group = plan.rank_groups.at(group_of(plan, rank));
    const MemoryStack stack = memory_stack(group);
    Description said{heading(plan, group, rank), {}, {}};
    said.rows.push_back({QObject::tr("device peak"), exact(stack.total()), {}});
    if (stack.runtime > Bytes{})
        said.rows.push_back({QObject::tr("runtime"), exact(stack.runtime), runtime_colour(dark)});
    if (stack.slack > Bytes{})
        said.rows.push_back(
            {QObject::tr("reserved, not allocated"), exact(stack.slack), reserved_brush(dark).color()});
    for (auto c = all_categories.rbegin(); c != all_categories.rend(); ++c)
        if (stack.allocated[*c] > Bytes{})
            said.rows.push_back({label(*c), exact(stack.allocated[*c]), category_colour(*c, dark)});
    said.rows.push_back({QObject::tr("allocated peak"), exact(stack.allocated.total()), {}});
    const OverallPeak overall = overall_peak(group);
    if (overall.phase != Phase::steady_step)
        said.rows.push_back(
            {QObject::tr("peak of %1").arg(text(to_string(overall.phase))), exact(overall.device), {}});
    said.closing = closing(overall.device, plan.memory.capacity);
    return said;
}

std::uint32_t group_of(const Plan& plan, std::uint64_t rank) {
    for (std::size_t g = 0; g < plan.rank_groups.size(); ++g)
        for (const RankRange& range : plan.rank_groups[g].ranks)
            if (range.first <= rank && rank <= range.last) return static_cast<std::uint32_t>(g);
    return 0;
}

}  // namespace zeroplan::gui
