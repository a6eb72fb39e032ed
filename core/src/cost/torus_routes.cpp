#include "cost/torus_routes.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

/// Steps forwards from one place to another of `size` in a circle.
std::uint64_t steps(std::uint64_t from, std::uint64_t to, std::uint64_t size) {
    return (to + size - from) % size;
}

/// The part of what goes `forwards` steps round a circle that goes forwards: all of it the shorter way, half
/// where both are as long. Of two nodes in a circle one link joins them.
double forward_share(std::uint64_t forwards, std::uint64_t size) {
    if (size == 2 || 2 * forwards < size) return 1;
    return 2 * forwards == size ? 0.5 : 0;
}

/// What passes each link of a circle forwards, from every place to every other; entry i is the link from i.
class Circle {
public:
    explicit Circle(std::uint64_t size) : change_(size + 1, 0) {}
    /// `units` along `count` links from `first` on.
    void add(std::uint64_t first, std::uint64_t count, double units) {
        const std::uint64_t size = change_.size() - 1, end = first + count;
        change_[first] += units;
        change_[std::min(end, size)] -= units;
        if (end <= size) return;
        change_[0] += units;
        change_[end - size] -= units;
    }
    std::vector<double> loads() const {
        std::vector<double> result;
        double load = 0;
        for (std::size_t i = 0; i + 1 < change_.size(); ++i) result.push_back(load += change_[i]);
        return result;
    }

private:
    std::vector<double> change_;  ///< of the load from one link to the next
};

}  // namespace

std::uint64_t torus_links_per_node(std::span<const std::uint64_t> dimensions) {
    std::uint64_t links = 0;
    for (const std::uint64_t size : dimensions) links += std::min<std::uint64_t>(size - 1, 2);
    return links;
}

std::uint64_t TorusRoutes::nodes() const {
    return stride(sizes_.size());
}

std::uint64_t TorusRoutes::stride(std::size_t dimension) const {
    std::uint64_t product = 1;
    for (std::size_t d = 0; d < dimension; ++d) product *= sizes_[d];
    return product;
}

std::uint64_t TorusRoutes::place(std::uint64_t node, std::size_t dimension) const {
    return node / stride(dimension) % sizes_[dimension];
}

void TorusRoutes::add_route(Crossing& crossing, std::uint64_t from, std::uint64_t to, double units) const {
    std::uint64_t node = from;
    for (std::size_t d = 0; d < sizes_.size(); ++d) {
        const std::uint64_t size = sizes_[d], start = place(node, d), step = stride(d);
        const std::uint64_t forwards = steps(start, place(to, d), size);
        if (forwards == 0) continue;
        const std::uint64_t row = node - start * step;
        const double share = forward_share(forwards, size);
        if (share > 0)
            for (std::uint64_t i = 0; i < forwards; ++i)
                crossing[link(row + (start + i) % size * step, d, false)] += units * share;
        if (share < 1)
            for (std::uint64_t i = 0; i < size - forwards; ++i)
                crossing[link(row + (start + size - i) % size * step, d, true)] += units * (1 - share);
        node = row + place(to, d) * step;
    }
}

/// At every node the sum over all that differ from it in dimensions `first` to `last` alone.
TorusRoutes::Weights TorusRoutes::summed(Weights weights, std::size_t first, std::size_t last) const {
    for (std::size_t d = first; d < last; ++d) {
        const std::uint64_t step = stride(d), size = sizes_[d];
        for (std::uint64_t node = 0; node < weights.size(); ++node) {
            if (place(node, d) != 0) continue;
            double sum = 0;
            for (std::uint64_t i = 0; i < size; ++i) sum += weights[node + i * step];
            for (std::uint64_t i = 0; i < size; ++i) weights[node + i * step] = sum;
        }
    }
    return weights;
}

/// Messages move along `dimension` in the row where dimensions before it are those of the destination
/// already, and dimensions behind it still those of the source.
void TorusRoutes::add_dimension(std::vector<double>& loads, std::size_t dimension, const Weights& from,
                                const Weights& to) const {
    const std::uint64_t size = sizes_[dimension], step = stride(dimension);
    const Weights sources = summed(from, 0, dimension), goals = summed(to, dimension + 1, sizes_.size());
    for (std::uint64_t row = 0; row < loads.size() / sizes_.size() / 2; ++row) {
        if (place(row, dimension) != 0) continue;
        Circle forwards(size), backwards(size);  // backwards: link i leads to i
        for (std::uint64_t a = 0; a < size; ++a) {
            if (sources[row + a * step] == 0) continue;
            for (std::uint64_t b = 0; b < size; ++b) {
                const double weight = sources[row + a * step] * goals[row + b * step];
                const std::uint64_t distance = steps(a, b, size);
                if (distance == 0 || weight == 0) continue;
                const double share = forward_share(distance, size);
                if (share > 0) forwards.add(a, distance, weight * share);
                if (share < 1) backwards.add(b, size - distance, weight * (1 - share));
            }
        }
        const std::vector<double> onwards = forwards.loads(), back = backwards.loads();
        for (std::uint64_t i = 0; i < size; ++i) {
            loads[link(row + i * step, dimension, false)] += onwards[i];
            loads[link(row + (i + 1) % size * step, dimension, true)] += back[i];
        }
    }
}

void TorusRoutes::add_routes(Crossing& crossing, const std::vector<FabricPort>& from,
                             const std::vector<FabricPort>& to, double units) const {
    if (from.size() * to.size() < nodes()) {
        for (const FabricPort& a : from)
            for (const FabricPort& b : to) add_route(crossing, a.node, b.node, units);
        return;
    }
    Weights sources(nodes(), 0), goals(nodes(), 0);
    for (const FabricPort& port : from) ++sources[port.node];
    for (const FabricPort& port : to) ++goals[port.node];
    std::vector<double> loads(nodes() * sizes_.size() * 2, 0);
    for (std::size_t d = 0; d < sizes_.size(); ++d) add_dimension(loads, d, sources, goals);
    for (std::uint64_t i = 0; i < loads.size(); ++i)
        if (loads[i] > 0) crossing[i] += loads[i] * units;
}

}  // namespace zeroplan
