#include "zeroplan/stated_gpus.hpp"

#include "json/scenario_document.hpp"

namespace zeroplan {

std::optional<std::uint64_t> stated_gpus(const ScenarioRequest& request) {
    const nlohmann::json document = merge_scenario(request).json;
    const auto cluster = document.find("cluster");
    if (cluster == document.end() || !cluster->is_object()) return std::nullopt;
    const auto gpus = cluster->find("gpus_used");
    // What isn't a number is refused by whoever reads the scenario, with its place.
    if (gpus == cluster->end() || !gpus->is_number_unsigned()) return std::nullopt;
    return gpus->get<std::uint64_t>();
}

}  // namespace zeroplan
