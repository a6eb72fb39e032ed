#include "link_loads.hpp"

#include "zeroplan/collective_cost.hpp"

namespace zeroplan::sim {
namespace {

void add_class(std::vector<LinkLoad>& loads, const std::string& name, std::uint64_t links, double rate,
               double bytes, double step_time_s) {
    if (bytes > 0) loads.push_back({name, links, rate, bytes, bytes / (rate * step_time_s)});
}

}  // namespace

std::vector<LinkLoad> link_loads(const TimedProgram& program, const ClusterSpec& cluster,
                                 double step_time_s) {
    double intra = 0, nic = 0;
    for (const TimedSection& section : program.sections) {
        for (const TimedNode& node : section.nodes) {
            if (node.collective == no_collective) continue;
            const CollectiveCost& cost = program.collectives[node.collective].cost;
            const double flow = static_cast<double>(section.repeat) * cost.unit_bytes;
            intra += cost.intra_weight * flow;
            nic += cost.nic_weight * flow;
        }
    }
    const LinkRates rates = link_rates(cluster);
    std::vector<LinkLoad> loads;
    add_class(loads, cluster.gpu.link.empty() ? "intra-node link" : cluster.gpu.link, cluster.gpus_used,
              rates.intra_node_bytes_per_s, intra, step_time_s);
    add_class(loads, "nic", cluster.gpus_used, rates.nic_bytes_per_s, nic, step_time_s);
    return loads;
}

}  // namespace zeroplan::sim
