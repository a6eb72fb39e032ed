#include "json/sim_views_json.hpp"

#include <nlohmann/json.hpp>

#include "report/slowest_group.hpp"
#include "zeroplan/critical_path.hpp"
#include "zeroplan/step_collectives.hpp"

namespace zeroplan {
namespace {

using nlohmann::ordered_json;

std::vector<PathPhase> slowest_path(const Plan& plan, const SimReport& report) {
    return path_phases(plan, number_of_slowest(report), slowest_group(report));
}

}  // namespace

ordered_json critical_path_json(const Plan& plan, const SimReport& report) {
    ordered_json out = ordered_json::array();
    for (const PathPhase& phase : slowest_path(plan, report)) {
        ordered_json row = {{"section", phase.section},
                            {"phase", phase.phase},
                            {"times", phase.times},
                            {"seconds", phase.seconds},
                            {"compute_s", phase.compute_s},
                            {"idle_s", phase.idle_s},
                            {"exposed_s", ordered_json(phase.exposed_s)}};
        if (!phase.longest_wait.empty())
            row["longest_wait"] = {{"operation", phase.longest_wait}, {"seconds", phase.longest_wait_s}};
        out.push_back(std::move(row));
    }
    return out;
}

ordered_json exposed_by_cause_json(const Plan& plan, const SimReport& report) {
    std::map<std::string, double> causes;
    for (const PathPhase& phase : slowest_path(plan, report))
        for (const auto& [cause, seconds] : phase.exposed_s) causes[cause] += seconds;
    return causes;
}

ordered_json collectives_json(const Plan& plan, const SimReport& report) {
    ordered_json out = ordered_json::array();
    for (const StepCollective& c : step_collectives(plan, number_of_slowest(report)))
        out.push_back({{"collective", c.kind},
                       {"group", to_string(c.group)},
                       {"ranks", c.ranks},
                       {"bytes", c.cost.bytes},
                       {"operations", c.count},
                       {"algorithm", to_string(c.cost.algorithm)},
                       {"protocol", to_string(c.cost.protocol)},
                       {"start_s", c.cost.start_s()},
                       {"time_s", c.cost.seconds()},
                       {"busbw_bytes_per_s", c.bus_bytes_per_s}});
    return out;
}

}  // namespace zeroplan
