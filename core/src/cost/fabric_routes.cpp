#include "zeroplan/fabric_routes.hpp"

#include <algorithm>

#include "cost/torus_routes.hpp"

namespace zeroplan {
namespace {

constexpr const char* leaf_name = "leaf uplink";
constexpr const char* rail_name = "rail uplink";
constexpr const char* pod_name = "pod uplink";
constexpr const char* torus_name = "torus link";

}  // namespace

void add(Crossing& crossing, const Crossing& other, double factor) {
    for (const auto& [link, units] : other) crossing[link] += factor * units;
}

FabricRoutes::FabricRoutes(const FabricSpec& spec, std::uint64_t nodes, std::uint64_t nics_per_node,
                           double nic_bytes_per_s, bool relays)
    : spec_(spec), nodes_(nodes), nics_per_node_(nics_per_node), relays_(relays) {
    if (!zeroplan::blocks(spec) || !(nic_bytes_per_s > 0)) return;
    const double node_bytes_per_s = static_cast<double>(nics_per_node) * nic_bytes_per_s;
    if (spec.kind == FabricKind::torus) {
        add_torus_links(node_bytes_per_s);
        return;
    }
    const double below = by_rail() ? nic_bytes_per_s : node_bytes_per_s;
    const double leaf = static_cast<double>(spec.nodes_per_leaf) * below / spec.leaf_oversubscription;
    // A switch that isn't oversubscribed passes all that comes from below.
    if (spec.leaf_oversubscription > 1)
        add_level(by_rail() ? rail_name : leaf_name, spec.nodes_per_leaf, leaf);
    if (spec.leaves_per_pod > 0 && spec.pod_oversubscription > 1)
        add_level(pod_name, spec.nodes_per_leaf * spec.leaves_per_pod,
                  static_cast<double>(spec.leaves_per_pod) * leaf / spec.pod_oversubscription);
}

void FabricRoutes::add_level(const char* name, std::uint64_t nodes_below, double bytes_per_s) {
    const std::uint64_t switches = (nodes_ + nodes_below - 1) / nodes_below * rails();
    const std::uint64_t first = links_.empty() ? 0 : links_.back().first + links_.back().count;
    levels_.push_back({nodes_below, first, first + switches});
    links_.push_back({name, first, switches, bytes_per_s, true});
    links_.push_back({name, first + switches, switches, bytes_per_s, false});
}

void FabricRoutes::add_torus_links(double node_bytes_per_s) {
    const std::uint64_t per_node = torus_links_per_node(spec_.dimensions);
    if (per_node == 0) return;  // a torus of one node
    const double rate = spec_.link_bytes_per_s > 0 ? spec_.link_bytes_per_s
                                                   : node_bytes_per_s / static_cast<double>(per_node);
    links_.push_back({torus_name, 0, nodes_ * spec_.dimensions.size() * 2, rate, true});
}

double FabricRoutes::bytes_per_s(std::uint64_t link) const {
    const auto found = std::find_if(links_.begin(), links_.end(), [link](const FabricLinks& links) {
        return link < links.first + links.count;
    });
    return found->bytes_per_s;
}

std::uint64_t FabricRoutes::switch_above(const Level& level, const FabricPort& port) const {
    const std::uint64_t number = port.node / level.nodes;
    return by_rail() ? number * rails() + port.rail % rails() : number;
}

void FabricRoutes::add_route(Crossing& crossing, const FabricPort& from, const FabricPort& to,
                             double units) const {
    if (!blocks() || from.node == to.node) return;
    if (spec_.kind == FabricKind::torus)
        return TorusRoutes(spec_.dimensions).add_route(crossing, from.node, to.node, units);
    for (const Level& level : levels_) {
        const std::uint64_t above_from = switch_above(level, from), above_to = switch_above(level, to);
        if (above_from == above_to) return;
        crossing[level.up + above_from] += units;
        crossing[level.down + above_to] += units;
    }
}

void FabricRoutes::add_routes(Crossing& crossing, const std::vector<FabricPort>& from,
                              const std::vector<FabricPort>& to, double units) const {
    if (!blocks()) return;
    if (spec_.kind == FabricKind::torus)
        return TorusRoutes(spec_.dimensions).add_routes(crossing, from, to, units);
    for (const Level& level : levels_) {
        std::map<std::uint64_t, std::pair<double, double>> below;  // by switch: how many of either list
        for (const FabricPort& port : from) ++below[switch_above(level, port)].first;
        for (const FabricPort& port : to) ++below[switch_above(level, port)].second;
        for (const auto& [number, ports] : below) {
            const double up = ports.first * (static_cast<double>(to.size()) - ports.second);
            const double down = ports.second * (static_cast<double>(from.size()) - ports.first);
            if (up > 0) crossing[level.up + number] += up * units;
            if (down > 0) crossing[level.down + number] += down * units;
        }
    }
}

void FabricRoutes::add_star(Crossing& crossing, const std::vector<FabricPort>& ports,
                            const std::function<StarShare(std::uint64_t)>& share) const {
    if (!blocks() || spec_.kind == FabricKind::torus) return;
    for (const Level& level : levels_) {
        std::map<std::uint64_t, std::uint64_t> below;  // by switch: how many of the ports
        for (const FabricPort& port : ports) ++below[switch_above(level, port)];
        if (below.size() == 1) return;
        for (const auto& [number, count] : below) {
            const StarShare of = share(count);
            crossing[level.up + number] += of.up;
            crossing[level.down + number] += of.down;
        }
    }
}

}  // namespace zeroplan
