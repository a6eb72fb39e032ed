#include "link_loads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace zeroplan::sim {
namespace {

struct Carried {
    double intra = 0, nic = 0;
};

Carried carried(const TimedProgram& program) {
    Carried bytes;
    for (const TimedSection& section : program.sections) {
        for (const TimedNode& node : section.nodes) {
            if (node.collective == no_collective) continue;
            const CollectiveCost& cost = program.collectives[node.collective].cost;
            const double flow = static_cast<double>(section.repeat) * cost.unit_bytes;
            bytes.intra += cost.intra_weight * flow;
            bytes.nic += cost.nic_weight * flow;
        }
    }
    return bytes;
}

/// Links at each fraction of the full rate, the whole ones first; the first class stands for all.
struct Kind {
    std::uint64_t links = 0;
    double bytes = 0;
};
using Kinds = std::map<double, Kind, std::greater<>>;

void add_loads(std::vector<LinkLoad>& loads, const std::string& name, const Kinds& kinds, double rate,
               double step_time_s) {
    for (const auto& [factor, kind] : kinds) {
        if (!(kind.bytes > 0)) continue;
        const double capacity = rate * factor;
        loads.push_back({factor < 1 ? fmt::format("{} at {:g}", name, factor) : name, kind.links, capacity,
                         kind.bytes, kind.bytes / (capacity * step_time_s)});
    }
}

}  // namespace

std::vector<LinkLoad> link_loads(const std::vector<TimedProgram>& programs, const RankClasses& classes,
                                 const ClusterSpec& cluster, double step_time_s) {
    Kinds gpu_links, nics;
    const auto add = [](Kinds& kinds, double factor, std::uint64_t links, double bytes) {
        Kind& kind = kinds.try_emplace(factor, Kind{0, bytes}).first->second;
        kind.links += links;
    };
    for (std::size_t c = 0; c < programs.size(); ++c) {
        const AlikeRanks& one = classes.classes[c];
        const Carried bytes = carried(programs[c]);
        add(gpu_links, one.gpu_link_factor, one.count(), bytes.intra);
        add(nics, one.nic_factor, one.count(), bytes.nic);
    }
    const LinkRates rates = link_rates(cluster);
    std::vector<LinkLoad> loads;
    add_loads(loads, cluster.gpu.link.empty() ? "intra-node link" : cluster.gpu.link, gpu_links,
              rates.intra_node_bytes_per_s, step_time_s);
    add_loads(loads, "nic", nics, rates.nic_bytes_per_s, step_time_s);
    return loads;
}

}  // namespace zeroplan::sim
