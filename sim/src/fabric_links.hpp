#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "links.hpp"
#include "zeroplan/fabric_routes.hpp"

namespace zeroplan::sim {

/// The links of a fabric, and which flows cross them. Shares are max-min fair, so that a link binds nobody
/// whose flows all take a larger part of another one: only those that no other link stands for are kept, so
/// that their number depends on how many kinds of ranks there are, not on how many ranks.
class FabricLinkTable {
public:
    explicit FabricLinkTable(const FabricRoutes& routes) : routes_(routes) {}

    /// A way to cross the fabric, for flows to take; returns its number.
    std::uint32_t add(const Crossing& crossing);
    /// A flow each of whose NICs sends `units`.
    void add_flow(std::uint32_t flow, std::uint32_t crossing, double units);
    /// Adds the links to `link_bytes_per_s`, and to each flow's what it crosses.
    void finish(std::vector<double>& link_bytes_per_s,
                const std::function<void(std::uint32_t flow, LinkUse use)>& cross) const;

private:
    /// Of a link: seconds that it takes for a unit of each crossing, by crossing.
    using Demand = std::map<std::uint32_t, double>;
    std::vector<Demand> deciding() const;

    struct Flow {
        std::uint32_t flow = 0;
        double units = 0;
    };
    const FabricRoutes& routes_;
    std::vector<std::vector<Flow>> flows_;  ///< by crossing
    std::map<std::uint64_t, Demand> demands_;
};

/// Whole numbers in the proportion of `units`, at most 256, and how many of them are a unit: exact where
/// there are such numbers, else to a part in 256 of the largest. SimGrid repeats a link as often as its
/// weight says.
struct WholeWeights {
    std::vector<std::uint32_t> weights;
    double per_unit = 1;
};
WholeWeights whole_weights(const std::vector<double>& units);

}  // namespace zeroplan::sim
