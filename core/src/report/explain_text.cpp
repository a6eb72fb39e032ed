#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/plan_parts.hpp"
#include "report/plan_views_text.hpp"
#include "report/size_unit.hpp"

namespace zeroplan {
namespace {

/// Why an ingredient is as large on every rank, however many there are.
std::string_view why_constant(std::string_view ingredient) {
    if (ingredient == "gathered_parameters") return "whole layers while they compute";
    if (ingredient == "communication_buffers") return "buckets of a fixed size";
    if (ingredient == "activations" || ingredient == "logits") return "of each rank's own micro-batch";
    if (ingredient == "temporaries") return "workspaces of kernels";
    if (ingredient == "allocator_holes") return "as blocks happen to lie";
    if (ingredient == "runtime") return "context, communicators, libraries";
    return "whole on every rank";
}

std::string in_words(const IngredientScaling& row, const SizeUnit& unit) {
    switch (row.scaling) {
        case Scaling::divided:
            return "divided";
        case Scaling::partly_divided:
            return fmt::format("in part: {} divided", unit.in_binary(row.divided));
        case Scaling::constant:
            return fmt::format("not divided: {}", why_constant(row.ingredient));
        case Scaling::grows:
            return "grows";
    }
    return "";
}

Bytes sum(const std::vector<IngredientScaling>& rows, Bytes IngredientScaling::*of) {
    return std::accumulate(rows.begin(), rows.end(), Bytes{},
                           [&](Bytes total, const IngredientScaling& row) { return total + row.*of; });
}

void add_scaling(TextPage& page, const Plan& plan, const Explanation& explanation) {
    const SizeUnit unit = unit_for(plan.memory.overall_peak_device);
    const bool twice = explanation.device_on_twice.has_value();
    Table table({unit.binary, fmt::format("{} ranks", format_count(explanation.ranks)),
                 twice ? fmt::format("{} ranks", format_count(2 * explanation.ranks)) : "", ""});
    table.left(3);
    for (const IngredientScaling& row : explanation.ingredients)
        table.row({zeroplan::in_words(row.ingredient), unit.in_binary(row.bytes),
                   row.on_twice ? unit.in_binary(*row.on_twice) : "", twice ? in_words(row, unit) : ""});
    table.rule().row({"device", unit.in_binary(plan.memory.overall_peak_device),
                      twice ? unit.in_binary(*explanation.device_on_twice) : "", ""});
    page.heading("What shrinks with the number of ranks that share the state, and what doesn't",
                 fmt::format(", {}", ranks_in_words(explanation.worst_ranks)));
    page.table(table);
    if (!twice) return page.paragraph("  ", "not planned with twice the ranks: " + explanation.why_not_twice);
    const Bytes divided = sum(explanation.ingredients, &IngredientScaling::divided);
    std::vector<std::string> stay;
    for (const IngredientScaling& row : explanation.ingredients)
        if (row.scaling != Scaling::divided && row.bytes > Bytes{})
            stay.push_back(zeroplan::in_words(row.ingredient));
    page.paragraph("  ",
                   fmt::format("{} of {} shrink as ranks are added; {} don't, however many there are: {}",
                               format_gib(divided), format_gib(plan.memory.overall_peak_device),
                               format_gib(plan.memory.overall_peak_device - divided), fmt::join(stay, ", ")));
}

/// At most `width` columns: the middle gives way, since names differ at both ends.
std::string shortened(const std::string& name, std::size_t width) {
    if (display_width(name) <= width || width < 5) return name;
    const std::size_t head = (width - 1) / 2, tail = width - 1 - head;
    return name.substr(0, head) + "…" + name.substr(name.size() - tail);
}

void add_live(TextPage& page, const Plan& plan, const Explanation& explanation) {
    constexpr std::size_t most_rows = 20;
    const SizeUnit unit = unit_for(plan.memory.overall_peak_device);
    page.heading("Live at the peak, largest first",
                 fmt::format(", {}, during \"{}\"", ranks_in_words(explanation.worst_ranks),
                             plan.memory.peak_operation));
    Table table({unit.binary, "tensors", "largest", "dtype", "holds", "of"});
    table.left(3).left(4).left(5);
    // Columns left of the name: sizes and the longest dtype and role.
    constexpr std::size_t other_columns = 62;
    const std::size_t name_width = page.width() > other_columns + 10 ? page.width() - other_columns : 10;
    Bytes rest;
    for (std::size_t i = 0; i < explanation.live.size(); ++i) {
        const LiveTensors& tensors = explanation.live[i];
        if (i >= most_rows) {
            rest += tensors.total;
            continue;
        }
        table.row({unit.in_binary(tensors.total), format_count(tensors.count), format_gib(tensors.largest),
                   std::string(to_string(tensors.dtype)), tensors.role, shortened(tensors.name, name_width)});
    }
    page.table(table);
    if (explanation.live.size() > most_rows)
        page.line(fmt::format("  … and {} more kinds, {} together; --json has all",
                              explanation.live.size() - most_rows, format_gib(rest)));
}

}  // namespace

void add_explanation(TextPage& page, const Plan& plan, const Explanation& explanation) {
    add_scaling(page, plan, explanation);
    add_live(page, plan, explanation);
}

}  // namespace zeroplan
