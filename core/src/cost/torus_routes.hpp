#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "zeroplan/fabric_routes.hpp"

namespace zeroplan {

/// Dimension-ordered routes on a torus: link (node · dimensions + dimension) · 2 leads from a node to the
/// next one in a dimension, the link behind it to the one before.
class TorusRoutes {
public:
    explicit TorusRoutes(std::span<const std::uint64_t> dimensions) : sizes_(dimensions) {}

    void add_route(Crossing& crossing, std::uint64_t from, std::uint64_t to, double units) const;
    /// From each to each, in time that grows with the size of the torus, not with the number of pairs.
    void add_routes(Crossing& crossing, const std::vector<FabricPort>& from,
                    const std::vector<FabricPort>& to, double units) const;

private:
    using Weights = std::vector<double>;  ///< by node
    std::uint64_t nodes() const;
    std::uint64_t stride(std::size_t dimension) const;
    std::uint64_t place(std::uint64_t node, std::size_t dimension) const;
    Weights summed(Weights weights, std::size_t first, std::size_t last) const;
    void add_dimension(std::vector<double>& loads, std::size_t dimension, const Weights& from,
                       const Weights& to) const;
    std::uint64_t link(std::uint64_t node, std::size_t dimension, bool backwards) const {
        return (node * sizes_.size() + dimension) * 2 + (backwards ? 1 : 0);
    }

    std::span<const std::uint64_t> sizes_;
};

/// How many links a node of a torus has: two a dimension, one where both lead to the same neighbour.
std::uint64_t torus_links_per_node(std::span<const std::uint64_t> dimensions);

}  // namespace zeroplan
