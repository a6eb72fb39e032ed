#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "zeroplan/fabric_spec.hpp"

namespace zeroplan {

/// What passes directed links of a fabric, by link: in units of a flow's bytes.
using Crossing = std::map<std::uint64_t, double>;
/// `crossing` += `factor` · `other`.
void add(Crossing& crossing, const Crossing& other, double factor = 1);

/// Where a NIC meets the fabric.
struct FabricPort {
    std::uint64_t node = 0, rail = 0;  ///< of the fabric; which of its NICs
    friend auto operator<=>(const FabricPort&, const FabricPort&) = default;
};

/// Directed links that are alike, numbered from `first` on.
struct FabricLinks {
    std::string name;
    std::uint64_t first = 0, count = 0;
    double bytes_per_s = 0;
    bool upwards = true;  ///< or a torus' either way
};

/// The links between NICs that can hold anything back, and which of them lie between two.
///
/// Trees: up to the lowest switch above both, and down. Links of the same two switches count as one: paths
/// that collide on one of them are not modelled. A torus routes one dimension after the other, the shorter
/// way round; where both are as long, half of the connections go each way.
class FabricRoutes {
public:
    /// Nothing blocks.
    FabricRoutes() = default;
    /// Of `nodes` nodes with so many NICs each. `relays`: a node's GPUs hand messages on to the one on the
    /// rail of their destination.
    FabricRoutes(const FabricSpec& spec, std::uint64_t nodes, std::uint64_t nics_per_node,
                 double nic_bytes_per_s, bool relays);

    bool blocks() const { return !links_.empty(); }
    /// Whether it matters over which of its NICs a node sends.
    bool by_rail() const { return spec_.kind == FabricKind::rail_optimised; }
    /// Ports of a node that it tells apart.
    std::uint64_t rails() const { return by_rail() ? nics_per_node_ : 1; }
    bool relays() const { return relays_; }
    const std::vector<FabricLinks>& links() const { return links_; }
    double bytes_per_s(std::uint64_t link) const;

    void add_route(Crossing& crossing, const FabricPort& from, const FabricPort& to, double units) const;
    /// Routes from each of one list to each of the other.
    void add_routes(Crossing& crossing, const std::vector<FabricPort>& from,
                    const std::vector<FabricPort>& to, double units) const;
    /// What passes a switch with `below` of the ports, up to and down from the tree of switches above them.
    struct StarShare {
        double up = 0, down = 0;
    };
    /// Up from the switches above the ports to the lowest one above all of them, and down: each switch sends
    /// and gets what `share` says of the number of ports below it. A torus has no switches.
    void add_star(Crossing& crossing, const std::vector<FabricPort>& ports,
                  const std::function<StarShare(std::uint64_t below)>& share) const;

private:
    /// Switches, each above `nodes` nodes, or one NIC of each.
    struct Level {
        std::uint64_t nodes = 1, up = 0, down = 0;  ///< up, down: the first of the links
    };
    std::uint64_t switch_above(const Level& level, const FabricPort& port) const;
    void add_level(const char* name, std::uint64_t nodes_below, double bytes_per_s);
    void add_torus_links(double node_bytes_per_s);

    FabricSpec spec_;
    std::uint64_t nodes_ = 0, nics_per_node_ = 1;
    bool relays_ = false;
    std::vector<Level> levels_;
    std::vector<FabricLinks> links_;
};

}  // namespace zeroplan
