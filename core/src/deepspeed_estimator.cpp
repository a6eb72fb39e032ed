#include "zeroplan/deepspeed_estimator.hpp"

#include <algorithm>
#include <map>

namespace zeroplan {
namespace {

/// Python's int(): towards zero.
Bytes truncated(double bytes) {
    return Bytes{static_cast<std::uint64_t>(bytes)};
}

double number(std::uint64_t count) {
    return static_cast<double>(count);
}

EstimatorRow stage_2(const EstimatorInput& in, bool old_formula, bool offload) {
    EstimatorRow row{.stage = 2, .old_formula = old_formula, .offload_optimizer = offload};
    const std::uint64_t gpus = in.nodes * in.gpus_per_node;
    const double params = number(in.total_params);
    if (offload) {
        row.gpu = 2 * Bytes{in.total_params};
        row.cpu =
            truncated(params * number(std::max<std::uint64_t>(4 * gpus, 16)) * in.additional_buffer_factor);
        return row;
    }
    const std::uint64_t whole = old_formula ? 4 : 2;
    const double divided = old_formula ? 16 : 18;
    row.gpu = whole * Bytes{in.total_params} + truncated(divided * params / number(gpus));
    row.cpu = truncated(params * 4 * number(in.gpus_per_node) * in.additional_buffer_factor);
    return row;
}

EstimatorRow stage_3(const EstimatorInput& in, bool offload_optimizer, bool offload_parameters,
                     bool zero_init) {
    EstimatorRow row{.stage = 3,
                     .offload_optimizer = offload_optimizer,
                     .offload_parameters = offload_parameters,
                     .zero_init = zero_init};
    const double params = number(in.total_params), gpus = number(in.nodes * in.gpus_per_node);
    const double node_share = 1 / number(in.nodes), loaded = 4 * number(in.gpus_per_node);
    row.gpu = 4 * Bytes{in.largest_layer_params};
    if (!offload_optimizer) {
        row.gpu += truncated(18 * params / gpus);
        const double at_once = zero_init ? number(in.largest_layer_params) : params;
        row.cpu = truncated(at_once * loaded * in.additional_buffer_factor);
        return row;
    }
    if (!offload_parameters) row.gpu += truncated(2 * params / gpus);
    const double state = (offload_parameters ? 18 : 16) * node_share;
    row.cpu = truncated(params * (zero_init ? state : std::max(loaded, state)) * in.additional_buffer_factor);
    return row;
}

/// "model.layers.0.mlp.up_proj" of "model.layers.0.mlp.up_proj.weight".
std::string module_of(const std::string& parameter) {
    const auto dot = parameter.rfind('.');
    return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

std::uint64_t largest_layer(const ModelSpec& model) {
    std::map<std::string, std::uint64_t> own;
    for (const Parameter& parameter : model.parameters) own[module_of(parameter.name)] += parameter.numel;
    std::uint64_t largest = 0;
    for (const auto& [module, count] : own) largest = std::max(largest, count);
    return largest;
}

}  // namespace

std::vector<EstimatorRow> deepspeed_estimate(const EstimatorInput& input) {
    std::vector<EstimatorRow> rows;
    for (const bool old_formula : {true, false})
        for (const bool offload : {true, false}) rows.push_back(stage_2(input, old_formula, offload));
    for (const bool optimizer : {true, false})
        for (const bool parameters : {true, false})
            for (const bool zero_init : {true, false})
                if (optimizer || !parameters)
                    rows.push_back(stage_3(input, optimizer, parameters, zero_init));
    return rows;
}

EstimatorInput estimator_input(const Scenario& scenario) {
    const std::uint64_t gpus = scenario.world_size();
    const std::uint64_t a_node = std::min(scenario.cluster.gpus_per_node, gpus);
    return {.total_params = scenario.model.parameter_count(),
            .largest_layer_params = largest_layer(scenario.model),
            .gpus_per_node = a_node,
            .nodes = (gpus + a_node - 1) / a_node};
}

}  // namespace zeroplan
