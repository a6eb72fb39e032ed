#include <algorithm>

#include <fmt/format.h>

#include "report/plan_parts.hpp"
#include "report/plan_views_text.hpp"
#include "report/size_unit.hpp"

namespace zeroplan {
namespace {

/// As DeepSpeed prints it: in GiB, which it calls GB.
std::string printed(Bytes bytes) {
    return fmt::format("{:.2f}", bytes.gib());
}

std::string name(const EstimatorRow& row, bool is_this_plan) {
    const char* version = row.stage == 3 ? "" : row.old_formula ? ", until 2024" : ", now";
    return fmt::format("{} ZeRO {}{}", is_this_plan ? "→" : " ", row.stage, version);
}

std::string formula(const EstimatorRow& row) {
    if (row.offload_optimizer) return row.stage == 2 ? "2P" : row.offload_parameters ? "4L" : "4L + 2P/N";
    if (row.stage == 2) return row.old_formula ? "4P + 16P/N" : "2P + 18P/N";
    return "4L + 18P/N";
}

void add_rows(TextPage& page, const EstimatorComparison& comparison) {
    const EstimatorInput& in = comparison.input;
    page.heading("DeepSpeed's own estimate of the model states",
                 fmt::format(", {} node{} × {} GPU{}", in.nodes, in.nodes == 1 ? "" : "s", in.gpus_per_node,
                             in.gpus_per_node == 1 ? "" : "s"));
    page.line(fmt::format("  P = {} parameters, L = {} in the largest layer, N = {} GPUs",
                          format_count(in.total_params), format_count(in.largest_layer_params),
                          format_count(in.nodes * in.gpus_per_node)));
    Table table(
        {"  GiB (it says GB)", "per CPU", "per GPU", "", "offload_optimizer", "offload_param", "zero_init"});
    table.left(3).left(4).left(5);
    for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
        const EstimatorRow& row = comparison.rows[i];
        const auto device = [](bool cpu) { return cpu ? "cpu" : "none"; };
        table.row({name(row, comparison.matching == i), printed(row.cpu), printed(row.gpu), formula(row),
                   device(row.offload_optimizer), row.stage == 3 ? device(row.offload_parameters) : "",
                   row.stage == 3 ? (row.zero_init ? "1" : "0") : ""});
    }
    page.table(table, 0);
    if (comparison.matching) page.line("  → asks what this plan answers");
    page.paragraph(
        "  ",
        "until DeepSpeed's pull request 5099 (June 2024) the estimate of ZeRO 2 took 4 B a parameter "
        "on every GPU and 16 B divided; since then 2 B, the 16-bit parameters, and 18 B");
}

void add_items(TextPage& page, const Plan& plan, const EstimatorComparison& comparison) {
    page.heading("Why this plan differs",
                 fmt::format(", {}, at the peak of \"{}\"", in_words(to_string(plan.memory.peak_phase)),
                             plan.memory.peak_operation));
    if (!comparison.matching) return page.paragraph("  ", comparison.why_none);
    const Bytes estimate = comparison.rows[*comparison.matching].gpu;
    const Bytes planned = plan.memory.overall_peak_device;
    const SizeUnit unit = unit_for(std::max(estimate, planned));
    const auto label = [](const std::string& item, const std::string& a, const std::string& b) {
        return fmt::format("  {:<21}  {:>9}  {:>8}  ", item, a, b);
    };
    page.line(label(unit.binary, "estimated", "planned") + "why");
    for (const EstimatorItem& item : comparison.items)
        page.paragraph(
            label(in_words(item.item), unit.in_binary(item.estimated), unit.in_binary(item.planned)),
            item.why);
    page.line(label("one GPU", unit.in_binary(estimate), unit.in_binary(planned)) + "in all");
    const Bytes host = plan.memory.host_per_node;
    page.paragraph("  ",
                   fmt::format("a node's RAM: {} estimated, with a factor of {} for buffers{}; planned for "
                               "the training: {}",
                               format_gib(comparison.rows[*comparison.matching].cpu),
                               comparison.input.additional_buffer_factor,
                               comparison.rows[*comparison.matching].offload_optimizer
                                   ? ""
                                   : " and every rank loading fp32 weights at once",
                               host == Bytes{} ? "nothing" : format_gib(host)));
}

}  // namespace

void add_estimator(TextPage& page, const Plan& plan, const EstimatorComparison& comparison) {
    add_rows(page, comparison);
    add_items(page, plan, comparison);
}

}  // namespace zeroplan
