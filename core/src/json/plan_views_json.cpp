#include <nlohmann/json.hpp>

#include "json/plan_to_json.hpp"
#include "zeroplan/plan_views.hpp"

namespace zeroplan {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(std::optional<Bytes> bytes) {
    return bytes ? ordered_json(bytes->count()) : ordered_json(nullptr);
}

ordered_json to_json(const IngredientScaling& row) {
    return {{"ingredient", row.ingredient},
            {"bytes", row.bytes.count()},
            {"on_twice_the_ranks_bytes", to_json(row.on_twice)},
            {"divided_bytes", row.divided.count()},
            {"scaling", row.on_twice ? ordered_json(to_string(row.scaling)) : ordered_json(nullptr)}};
}

ordered_json to_json(const LiveTensors& tensors) {
    return {{"name", tensors.name},
            {"holds", tensors.role},
            {"category", to_string(tensors.category)},
            {"dtype", to_string(tensors.dtype)},
            {"tensors", tensors.count},
            {"largest_bytes", tensors.largest.count()},
            {"bytes", tensors.total.count()}};
}

/// The changes that would make it fit are the plan's "remedies".
ordered_json to_json(const Explanation& explanation, const ordered_json& plan) {
    ordered_json out;
    out["ranks"] = to_string(explanation.worst_ranks);
    out["ranks_that_share_the_state"] = explanation.ranks;
    out["ingredients"] = ordered_json::array();
    for (const IngredientScaling& row : explanation.ingredients) out["ingredients"].push_back(to_json(row));
    out["device_on_twice_the_ranks_bytes"] = to_json(explanation.device_on_twice);
    if (!explanation.device_on_twice) out["why_not_twice_the_ranks"] = explanation.why_not_twice;
    out["live"] = ordered_json::array();
    for (const LiveTensors& tensors : explanation.live) out["live"].push_back(to_json(tensors));
    out["changes"] = plan.value("remedies", ordered_json::array());
    return out;
}

ordered_json to_json(const std::vector<std::pair<std::string, Bytes>>& ingredients) {
    ordered_json out = ordered_json::object();
    for (const auto& [name, bytes] : ingredients) out[name] = bytes.count();
    return out;
}

ordered_json to_json(const StagePoint& point) {
    if (!point.refused.empty())
        return {{"zero_stage", point.stage}, {"gpus", point.gpus}, {"refused", point.refused}};
    return {{"zero_stage", point.stage},
            {"gpus", point.gpus},
            {"peak_device_bytes", point.peak_device.count()},
            {"verdict", to_string(point.verdict)},
            {"at_peak", to_json(point.ingredients)}};
}

ordered_json to_json(const CostlierStage& found) {
    return {{"lower_stage", found.lower},
            {"higher_stage", found.higher},
            {"gpus", found.gpus},
            {"worst_gpus", found.worst_gpus},
            {"more_bytes", found.more.count()},
            {"grown", to_json(found.grown)}};
}

ordered_json to_json(const StageComparison& comparison) {
    ordered_json out;
    out["capacity_bytes"] = comparison.capacity.count();
    out["gpus"] = comparison.gpus;
    out["points"] = ordered_json::array();
    for (const StagePoint& point : comparison.points) out["points"].push_back(to_json(point));
    out["costlier_stages"] = ordered_json::array();
    for (const CostlierStage& found : comparison.costlier) out["costlier_stages"].push_back(to_json(found));
    return out;
}

ordered_json to_json(const EstimatorRow& row) {
    ordered_json out = {{"zero_stage", row.stage},
                        {"formula", row.old_formula ? "until_2024_06" : "current"},
                        {"offload_optimizer", row.offload_optimizer ? "cpu" : "none"}};
    if (row.stage == 3) {
        out["offload_param"] = row.offload_parameters ? "cpu" : "none";
        out["zero_init"] = row.zero_init;
    }
    out["cpu_bytes"] = row.cpu.count();
    out["gpu_bytes"] = row.gpu.count();
    return out;
}

ordered_json to_json(const EstimatorComparison& comparison) {
    ordered_json out;
    out["what"] = "deepspeed-estimator";
    out["total_params"] = comparison.input.total_params;
    out["largest_layer_params"] = comparison.input.largest_layer_params;
    out["gpus_per_node"] = comparison.input.gpus_per_node;
    out["nodes"] = comparison.input.nodes;
    out["additional_buffer_factor"] = comparison.input.additional_buffer_factor;
    out["rows"] = ordered_json::array();
    for (const EstimatorRow& row : comparison.rows) out["rows"].push_back(to_json(row));
    out["matching_row"] = comparison.matching ? ordered_json(*comparison.matching) : ordered_json(nullptr);
    if (!comparison.matching) out["why_no_row"] = comparison.why_none;
    out["items"] = ordered_json::array();
    for (const EstimatorItem& item : comparison.items)
        out["items"].push_back({{"item", item.item},
                                {"estimated_bytes", item.estimated.count()},
                                {"planned_bytes", item.planned.count()},
                                {"why", item.why}});
    return out;
}

}  // namespace

std::string plan_views_json(const Plan& plan, const PlanViews& views, int indent) {
    ordered_json out = plan_to_json(plan);
    if (views.explanation) out["explain"] = to_json(*views.explanation, out);
    if (views.stages) out["compare_stages"] = to_json(*views.stages);
    if (views.estimator) out["against"] = to_json(*views.estimator);
    return out.dump(indent);
}

}  // namespace zeroplan
