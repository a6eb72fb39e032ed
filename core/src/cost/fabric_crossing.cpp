#include "zeroplan/fabric_crossing.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

/// The crossing of one communicator that grows message by message.
class Builder {
public:
    Builder(const CommunicatorSite& site, const FabricRoutes& routes)
        : nodes_(site.nodes),
          routes_(routes),
          node_units_(static_cast<double>(site.ranks) / static_cast<double>(site.nodes.size())) {}

    Crossing ring() {
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            edge(nodes_[i], nodes_[(i + 1) % nodes_.size()], node_units_);
        return std::move(crossing_);
    }

    /// A node sends the buffer twice (once of two nodes), an edge half of it each way.
    Crossing trees() {
        const std::vector<std::uint64_t> parents = binary_tree(nodes_.size());
        const double units = node_units_ / (nodes_.size() == 2 ? 2 : 4);
        const auto both_ways = [&](const GroupNode& a, const GroupNode& b) {
            edge(a, b, units);
            edge(b, a, units);
        };
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            both_ways(nodes_[i], nodes_[parents[i]]);
            both_ways(in_second_tree(i), in_second_tree(parents[i]));
        }
        return std::move(crossing_);
    }

    /// Over a distance of d = 2^k nodes go the chunks that come from multiples of 2d behind it.
    Crossing powers_of_two() {
        const std::size_t count = nodes_.size();
        for (std::size_t distance = 1; distance < count; distance *= 2) {
            const std::size_t chunks = (count - distance + 2 * distance - 1) / (2 * distance);
            const double units = node_units_ * static_cast<double>(chunks) / static_cast<double>(count - 1);
            for (std::size_t i = 0; i < count; ++i) edge(nodes_[i], nodes_[(i + distance) % count], units);
        }
        return std::move(crossing_);
    }

    /// Units are what a NIC sends or gets, whichever is more: all of its part of the buffer, but of an
    /// all-gather what the others bring.
    Crossing star(CrossingPattern pattern) {
        const auto count = static_cast<double>(nodes_.size());
        const std::size_t rails = routes_.by_rail() ? nodes_.front().rails.size() : 1;
        const double units = node_units_ / static_cast<double>(rails);
        for (std::size_t i = 0; i < rails; ++i)
            routes_.add_star(crossing_, ith_ports(i), [&](std::uint64_t below) {
                const auto inside = static_cast<double>(below);
                if (pattern == CrossingPattern::star_all_gather)
                    return FabricRoutes::StarShare{units * inside / (count - 1),
                                                   units * (count - inside) / (count - 1)};
                const bool scatters = pattern == CrossingPattern::star_reduce_scatter;
                return FabricRoutes::StarShare{units, scatters ? units * inside / count : units};
            });
        return std::move(crossing_);
    }

    Crossing pairs() {
        const double units = node_units_ / static_cast<double>(nodes_.size() - 1);  // from node to node
        if (!routes_.by_rail()) {
            const std::vector<FabricPort> ports = ports_of({0});
            routes_.add_routes(crossing_, ports, ports, units);
        } else if (!same_rails()) {
            for (const GroupNode& from : nodes_)
                for (const GroupNode& to : nodes_) rank_to_rank(from, to, units);
        } else if (routes_.relays()) {
            on_each_rail(units / static_cast<double>(nodes_.front().rails.size()));
        } else {
            between_all_rails(units);
        }
        return std::move(crossing_);
    }

private:
    /// The second tree is the first one mirrored, or shifted by one where the number of nodes is odd.
    const GroupNode& in_second_tree(std::size_t node) const {
        return nodes_[nodes_.size() % 2 == 0 ? nodes_.size() - 1 - node : (node + 1) % nodes_.size()];
    }

    /// Over all NICs, the first of one node to the first of the other, and so on.
    void edge(const GroupNode& from, const GroupNode& to, double units) {
        if (!routes_.by_rail()) return routes_.add_route(crossing_, {from.node, 0}, {to.node, 0}, units);
        const std::size_t count = std::max(from.rails.size(), to.rails.size());
        for (std::size_t i = 0; i < count; ++i)
            routes_.add_route(crossing_, {from.node, from.rails[i % from.rails.size()]},
                              {to.node, to.rails[i % to.rails.size()]}, units / static_cast<double>(count));
    }

    bool same_rails() const {
        return std::all_of(nodes_.begin(), nodes_.end(),
                           [&](const GroupNode& node) { return node.rails == nodes_.front().rails; });
    }

    std::vector<FabricPort> ports_of(const std::vector<std::uint64_t>& rails) const {
        std::vector<FabricPort> ports;
        for (const GroupNode& node : nodes_)
            for (const std::uint64_t rail : rails) ports.push_back({node.node, rail});
        return ports;
    }

    /// The i-th NIC of each node, over which one tree of switches reduces.
    std::vector<FabricPort> ith_ports(std::size_t i) const {
        std::vector<FabricPort> ports;
        for (const GroupNode& node : nodes_)
            ports.push_back({node.node, routes_.by_rail() ? node.rails[i % node.rails.size()] : 0});
        return ports;
    }

    void on_each_rail(double units) {
        for (const std::uint64_t rail : nodes_.front().rails) {
            const std::vector<FabricPort> ports = ports_of({rail});
            routes_.add_routes(crossing_, ports, ports, units);
        }
    }

    /// What would go from rail to rail of one node stays inside it: one in so many of those that change
    /// rails.
    void between_all_rails(double units) {
        const std::vector<std::uint64_t>& rails = nodes_.front().rails;
        const auto count = static_cast<double>(nodes_.size());
        const double each = units / static_cast<double>(rails.size() * rails.size());
        for (const std::uint64_t from : rails)
            for (const std::uint64_t to : rails)
                routes_.add_routes(crossing_, ports_of({from}), ports_of({to}),
                                   from == to ? each : each * (count - 1) / count);
    }

    void rank_to_rank(const GroupNode& from, const GroupNode& to, double units) {
        if (from.node == to.node) return;
        const double each = units / static_cast<double>(from.rails.size() * to.rails.size());
        for (const std::uint64_t source : from.rails)
            for (const std::uint64_t goal : to.rails) {
                const bool relayed = routes_.relays() && std::find(from.rails.begin(), from.rails.end(),
                                                                   goal) != from.rails.end();
                routes_.add_route(crossing_, {from.node, relayed ? goal : source}, {to.node, goal}, each);
            }
    }

    const std::vector<GroupNode>& nodes_;
    const FabricRoutes& routes_;
    double node_units_;  ///< that a node sends over its NICs
    Crossing crossing_;
};

}  // namespace

CommunicatorSite as_seen_by(const FabricRoutes& routes, CommunicatorSite site) {
    if (!routes.by_rail())
        for (GroupNode& node : site.nodes) node.rails = {0};
    return site;
}

std::vector<std::uint64_t> binary_tree(std::uint64_t nodes) {
    std::vector<std::uint64_t> parents(nodes, 0);
    for (std::uint64_t node = 1; node < nodes; ++node) {
        const std::uint64_t lowest = node & (~node + 1);  // the lowest bit that is set
        const std::uint64_t above = (node ^ lowest) | (lowest << 1);
        parents[node] = above < nodes ? above : node ^ lowest;
    }
    return parents;
}

CrossingPattern crossing_pattern(CollectiveAlgorithm algorithm, CollectiveKind kind) {
    switch (algorithm) {
        case CollectiveAlgorithm::nvls:  // between nodes NCCL runs it with switches that reduce alone
        case CollectiveAlgorithm::collnet_direct:
        case CollectiveAlgorithm::collnet_chain:
            if (kind == CollectiveKind::all_gather) return CrossingPattern::star_all_gather;
            return kind == CollectiveKind::reduce_scatter ? CrossingPattern::star_reduce_scatter
                                                          : CrossingPattern::star_all_reduce;
        case CollectiveAlgorithm::tree:
        case CollectiveAlgorithm::nvls_tree:
            return CrossingPattern::trees;
        case CollectiveAlgorithm::pairwise:
            return CrossingPattern::pairs;
        case CollectiveAlgorithm::pat:
            return CrossingPattern::powers_of_two;
        default:
            return CrossingPattern::ring;
    }
}

Crossing fabric_crossing(CrossingPattern pattern, const CommunicatorSite& site, const FabricRoutes& routes) {
    if (site.nodes.size() < 2 || !routes.blocks()) return {};
    Builder builder(site, routes);
    switch (pattern) {
        case CrossingPattern::trees:
            return builder.trees();
        case CrossingPattern::pairs:
            return builder.pairs();
        case CrossingPattern::powers_of_two:
            return builder.powers_of_two();
        case CrossingPattern::star_all_reduce:
        case CrossingPattern::star_all_gather:
        case CrossingPattern::star_reduce_scatter:
            return builder.star(pattern);
        case CrossingPattern::ring:
            break;
    }
    return builder.ring();
}

}  // namespace zeroplan
