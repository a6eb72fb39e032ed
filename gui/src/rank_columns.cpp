#include "zeroplan/gui/rank_columns.hpp"

#include <algorithm>
#include <cmath>

#include "zeroplan/gui/memory_stack.hpp"

namespace zeroplan::gui {

namespace {

constexpr double least_bar = 7, least_group_slot = 56, widest_bar = 96;

struct OwnedRange {
    RankRange ranks;
    std::uint32_t group = 0;
};

std::vector<OwnedRange> ranges_in_order(const Plan& plan) {
    std::vector<OwnedRange> ranges;
    for (std::size_t g = 0; g < plan.rank_groups.size(); ++g)
        for (const RankRange& range : plan.rank_groups[g].ranks)
            ranges.push_back({range, static_cast<std::uint32_t>(g)});
    std::sort(ranges.begin(), ranges.end(),
              [](const OwnedRange& a, const OwnedRange& b) { return a.ranks.first < b.ranks.first; });
    return ranges;
}

RankColumn in_slot(double slot, double slot_width, RankRange ranks, std::uint32_t group) {
    const double gap = std::clamp(slot_width * 0.15, 1.0, 10.0);
    const double x = std::round(slot + gap / 2);
    const double width = std::clamp(std::round(slot + slot_width - gap / 2) - x, 1.0, widest_bar);
    return {slot, slot_width, x, width, ranks, group};
}

std::vector<RankColumn> by_rank(const std::vector<OwnedRange>& ranges, double left, double slot) {
    std::vector<RankColumn> columns;
    for (const OwnedRange& range : ranges)
        for (auto rank = range.ranks.first; rank <= range.ranks.last; ++rank)
            columns.push_back(
                in_slot(left + slot * static_cast<double>(columns.size()), slot, {rank, rank}, range.group));
    return columns;
}

// Largest group memory first is not wanted here: rank order is what people look for.
std::vector<RankColumn> by_group(const Plan& plan, double left, double slot) {
    std::vector<RankColumn> columns;
    for (std::size_t g = 0; g < plan.rank_groups.size(); ++g) {
        const auto& ranks = plan.rank_groups[g].ranks;
        if (ranks.empty()) continue;
        columns.push_back(in_slot(left + slot * static_cast<double>(columns.size()), slot,
                                  {ranks.front().first, ranks.back().last}, static_cast<std::uint32_t>(g)));
    }
    return columns;
}

std::vector<RankColumn> by_pixel(const Plan& plan, const std::vector<OwnedRange>& ranges, double left,
                                 double width, std::uint64_t ranks) {
    std::vector<Bytes> device;
    for (const RankGroup& group : plan.rank_groups) device.push_back(overall_peak(group).device);
    std::vector<RankColumn> columns;
    const auto pixels = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(width));
    std::size_t at = 0;
    for (std::uint64_t pixel = 0; pixel < pixels; ++pixel) {
        const RankRange span{pixel * ranks / pixels,
                             std::max((pixel + 1) * ranks / pixels, pixel * ranks / pixels + 1) - 1};
        while (at + 1 < ranges.size() && ranges[at].ranks.last < span.first) ++at;
        std::uint32_t fullest = ranges[at].group;
        for (std::size_t i = at; i < ranges.size() && ranges[i].ranks.first <= span.last; ++i)
            if (device[ranges[i].group] > device[fullest]) fullest = ranges[i].group;
        if (!columns.empty() && columns.back().group == fullest) {
            columns.back().width += 1;
            columns.back().slot_width += 1;
            columns.back().ranks.last = span.last;
        } else {
            const double x = left + static_cast<double>(pixel);
            columns.push_back({x, 1, x, 1, span, fullest});
        }
    }
    return columns;
}

}  // namespace

RankColumns rank_columns(const Plan& plan, double left, double width) {
    const auto ranges = ranges_in_order(plan);
    if (ranges.empty() || width < 1) return {};
    std::uint64_t ranks = 0;
    for (const OwnedRange& range : ranges) ranks += range.ranks.last - range.ranks.first + 1;

    if (const double slot = width / static_cast<double>(ranks); slot >= least_bar)
        return {ColumnMode::rank, by_rank(ranges, left, slot)};
    if (const double slot = width / static_cast<double>(plan.rank_groups.size()); slot >= least_group_slot)
        return {ColumnMode::group, by_group(plan, left, slot)};
    return {ColumnMode::pixel, by_pixel(plan, ranges, left, width, ranks)};
}

}  // namespace zeroplan::gui
