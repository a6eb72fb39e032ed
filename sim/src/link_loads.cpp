#include "link_loads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "uplinks.hpp"

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

/// What the collectives that a class brings to its communicators, and its messages, send up from each leaf.
class UplinkBytes {
public:
    UplinkBytes(const TimedProgram& program, const RankClasses& classes, std::uint32_t rank_class)
        : program_(program), classes_(classes), class_(rank_class) {}

    std::map<std::uint64_t, double> up() const {
        std::map<std::uint32_t, double> runs;  // how often each collective runs in a step
        std::map<std::uint32_t, std::uint32_t> channel;
        for (const TimedSection& section : program_.sections)
            for (const TimedNode& node : section.nodes) {
                if (node.collective == no_collective) continue;
                runs[node.collective] += static_cast<double>(section.repeat);
                if (node.transfer == TransferSide::send) channel[node.collective] = node.channel;
            }
        std::map<std::uint64_t, double> bytes;
        for (const auto& [collective, times] : runs) {
            const auto message = channel.find(collective);
            const double unit = program_.collectives[collective].cost.unit_bytes;
            const LeafCrossing crossing = message != channel.end()
                                              ? messages(classes_, class_, message->second, cost(collective))
                                              : collectives(collective);
            for (const auto& [leaf, units] : crossing.up) bytes[leaf] += times * units * unit;
        }
        return bytes;
    }

private:
    const CollectiveCost& cost(std::uint32_t collective) const {
        return program_.collectives[collective].cost;
    }

    /// Of all communicators of the kind; the first of their classes brings them.
    LeafCrossing collectives(std::uint32_t collective) const {
        const auto kind = static_cast<std::size_t>(program_.collectives[collective].group);
        const ClassCommunicator& communicator =
            classes_.communicators[classes_.classes[class_].communicator[kind]];
        LeafCrossing sum;
        if (communicator.classes.front() != class_) return sum;
        for (const CommunicatorSite& site : communicator.sites)
            sum += leaf_crossing(cost(collective), site.leaves, site.ranks);
        return sum;
    }

    const TimedProgram& program_;
    const RankClasses& classes_;
    std::uint32_t class_;
};

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

void add_uplink_load(std::vector<LinkLoad>& loads, const std::vector<TimedProgram>& programs,
                     const RankClasses& classes, double uplink_bytes_per_s, double step_time_s) {
    if (!(uplink_bytes_per_s > 0)) return;
    std::map<std::uint64_t, double> bytes;  // by leaf
    for (std::uint32_t c = 0; c < programs.size(); ++c)
        for (const auto& [leaf, sent] : UplinkBytes(programs[c], classes, c).up()) bytes[leaf] += sent;
    double most = 0;
    for (const auto& [leaf, sent] : bytes) most = std::max(most, sent);
    if (most > 0)
        loads.push_back({"leaf uplink, fullest", bytes.size(), uplink_bytes_per_s, most,
                         most / (uplink_bytes_per_s * step_time_s)});
}

}  // namespace zeroplan::sim
