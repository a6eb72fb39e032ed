#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/plan_parts.hpp"
#include "report/plan_views_text.hpp"
#include "report/size_unit.hpp"
#include "report/stage_chart.hpp"

namespace zeroplan {
namespace {

std::string_view why_it_grows(std::string_view ingredient) {
    if (ingredient == "gathered_parameters") return "whole layers are gathered to compute";
    if (ingredient == "communication_buffers") return "gradients pass through buckets to their owners";
    if (ingredient == "gradients") return "gradients are kept beside what is reduced";
    if (ingredient == "temporaries") return "workspaces of collectives and of the optimizer";
    if (ingredient == "allocator_holes") return "blocks of more sizes leave more holes";
    if (ingredient == "runtime") return "buffers of more communicators";
    if (ingredient == "activations" || ingredient == "logits")
        return "another moment of the step is the peak";
    return "padding to whole shards";
}

/// "70.51", "132.10 ✗"; columns stay aligned because every cell ends with a mark or its room.
std::string cell(const StagePoint& point, const SizeUnit& unit) {
    if (!point.refused.empty()) return "–  ";
    const char* mark = point.verdict == Verdict::fits       ? "  "
                       : point.verdict == Verdict::marginal ? " ~"
                                                            : " ✗";
    return unit.in_binary(point.peak_device) + mark;
}

void add_table(TextPage& page, const StageComparison& comparison, const SizeUnit& unit) {
    Table table({unit.binary, "ZeRO 0  ", "ZeRO 1  ", "ZeRO 2  ", "ZeRO 3  "});
    const std::size_t counts = comparison.gpus.size();
    for (std::size_t c = 0; c < counts; ++c) {
        std::vector<std::string> cells{
            fmt::format("{} GPU{}", format_count(comparison.gpus[c]), comparison.gpus[c] == 1 ? "" : "s")};
        for (std::size_t p = c; p < comparison.points.size(); p += counts)
            cells.push_back(cell(comparison.points[p], unit));
        table.row(std::move(cells));
    }
    page.table(table);
    page.line(fmt::format("  of {} {} a GPU; ✗ does not fit, ~ marginal, – can't be planned",
                          unit.in_binary(comparison.capacity), unit.binary));
}

/// Each reason once, with the stages that it refuses.
void add_refusals(TextPage& page, const StageComparison& comparison) {
    std::vector<std::pair<std::string, std::vector<std::uint64_t>>> reasons;
    for (const StagePoint& point : comparison.points) {
        if (point.refused.empty()) continue;
        auto found = std::find_if(reasons.begin(), reasons.end(),
                                  [&](const auto& reason) { return reason.first == point.refused; });
        if (found == reasons.end()) found = reasons.insert(reasons.end(), {point.refused, {}});
        if (found->second.empty() || found->second.back() != point.stage)
            found->second.push_back(point.stage);
    }
    for (const auto& [reason, stages] : reasons)
        page.paragraph(fmt::format("  – ZeRO {}: ", number_ranges(stages)), reason);
}

void add_costlier(TextPage& page, const CostlierStage& found) {
    std::vector<std::string> parts;
    for (const auto& [ingredient, more] : found.grown)
        parts.push_back(
            fmt::format("{} +{} ({})", in_words(ingredient), format_gib(more), why_it_grows(ingredient)));
    std::vector<std::string> counts;
    for (const std::uint64_t gpus : found.gpus) counts.push_back(format_count(gpus));
    page.paragraph(fmt::format("  ZeRO {} takes more than ZeRO {} ", found.higher, found.lower),
                   fmt::format("on {} GPU{}: {} more on {}, since {}", fmt::join(counts, ", "),
                               counts == std::vector<std::string>{"1"} ? "" : "s", format_gib(found.more),
                               format_count(found.worst_gpus), fmt::join(parts, "; ")));
}

}  // namespace

void add_stage_comparison(TextPage& page, const StageComparison& comparison) {
    Bytes largest = comparison.capacity;
    for (const StagePoint& point : comparison.points) largest = std::max(largest, point.peak_device);
    page.heading("Peak device memory by ZeRO stage and GPUs",
                 ", the same micro-batch on each, the fullest one");
    add_table(page, comparison, unit_for(largest));
    add_refusals(page, comparison);
    const std::vector<std::string> chart = stage_chart(comparison, page.width());
    if (!chart.empty()) page.line("");
    for (const std::string& line : chart) page.line(line);
    page.heading("Where a higher stage takes more memory");
    if (comparison.costlier.empty())
        return page.line("  nowhere: every stage takes less than those below it");
    for (const CostlierStage& found : comparison.costlier) add_costlier(page, found);
}

}  // namespace zeroplan
