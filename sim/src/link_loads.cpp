#include "link_loads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "crossings.hpp"

namespace zeroplan::sim {
namespace {

struct Carried {
    double intra = 0, bridge = 0, nic = 0;
};

Carried carried(const TimedProgram& program) {
    Carried bytes;
    for (const TimedSection& section : program.sections) {
        for (const TimedNode& node : section.nodes) {
            if (node.collective == no_collective) continue;
            const CollectiveCost& cost = program.collectives[node.collective].cost;
            const double flow = static_cast<double>(section.repeat) * cost.unit_bytes;
            (cost.on_bridge ? bytes.bridge : bytes.intra) += cost.intra_weight * flow;
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

/// What the collectives that a class brings to its communicators, and its messages, send over the fabric.
class FabricBytes {
public:
    FabricBytes(const RankClasses& classes, const FabricRoutes& routes)
        : classes_(classes), crossings_(classes, routes) {}

    void add(const TimedProgram& program, std::uint32_t rank_class) {
        for (const TimedSection& section : program.sections)
            for (const TimedNode& node : section.nodes) {
                if (node.collective == no_collective) continue;
                const TimedCollective& collective = program.collectives[node.collective];
                if (const auto crossing = crossing_of(node, collective, rank_class))
                    nic_bytes_[*crossing] += static_cast<double>(section.repeat) *
                                             collective.cost.nic_weight * collective.cost.unit_bytes;
            }
    }

    Crossing bytes() const {
        Crossing result;
        for (const auto& [crossing, sent] : nic_bytes_) zeroplan::add(result, crossings_[crossing], sent);
        return result;
    }

private:
    /// Nothing if another class brings it.
    std::optional<std::uint32_t> crossing_of(const TimedNode& node, const TimedCollective& collective,
                                             std::uint32_t rank_class) {
        if (node.transfer == TransferSide::send) return crossings_.of_message(rank_class, node.channel);
        if (node.transfer != TransferSide::none) return std::nullopt;
        const std::uint32_t communicator =
            classes_.classes[rank_class].communicator[static_cast<std::size_t>(collective.group)];
        if (classes_.communicators[communicator].classes.front() != rank_class) return std::nullopt;
        return crossings_.of_collective(communicator, collective);
    }

    const RankClasses& classes_;
    Crossings crossings_;
    std::map<std::uint32_t, double> nic_bytes_;  ///< that a NIC sends, by crossing
};

}  // namespace

std::vector<LinkLoad> link_loads(const std::vector<TimedProgram>& programs, const RankClasses& classes,
                                 const ClusterSpec& cluster, double step_time_s) {
    Kinds gpu_links, bridges, nics;
    const auto add = [](Kinds& kinds, double factor, std::uint64_t links, double bytes) {
        Kind& kind = kinds.try_emplace(factor, Kind{0, bytes}).first->second;
        kind.links += links;
    };
    for (std::size_t c = 0; c < programs.size(); ++c) {
        const AlikeRanks& one = classes.classes[c];
        const Carried bytes = carried(programs[c]);
        add(gpu_links, one.gpu_link_factor, one.count(), bytes.intra);
        add(bridges, one.gpu_link_factor, one.count(), bytes.bridge);
        add(nics, one.nic_factor, one.count(), bytes.nic);
    }
    const LinkRates rates = link_rates(cluster);
    std::vector<LinkLoad> loads;
    add_loads(loads, intra_node_link_name(cluster), gpu_links, rates.intra_node_bytes_per_s, step_time_s);
    add_loads(loads, bridge_name, bridges, rates.bridge_bytes_per_s, step_time_s);
    add_loads(loads, "nic", nics, rates.nic_bytes_per_s, step_time_s);
    return loads;
}

void add_fabric_loads(std::vector<LinkLoad>& loads, const std::vector<TimedProgram>& programs,
                      const RankClasses& classes, const FabricRoutes& routes, double step_time_s) {
    FabricBytes sent(classes, routes);
    for (std::uint32_t c = 0; c < programs.size(); ++c) sent.add(programs[c], c);
    const Crossing bytes = sent.bytes();
    for (const FabricLinks& links : routes.links()) {
        if (!links.upwards) continue;
        std::uint64_t used = 0;
        double most = 0;
        for (auto at = bytes.lower_bound(links.first);
             at != bytes.end() && at->first < links.first + links.count; ++at) {
            if (at->second > 0) ++used;
            most = std::max(most, at->second);
        }
        if (most > 0)
            loads.push_back({links.name + ", fullest", used, links.bytes_per_s, most,
                             most / (links.bytes_per_s * step_time_s)});
    }
}

}  // namespace zeroplan::sim
