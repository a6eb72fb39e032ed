#include "cost/measured_collectives.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace zeroplan {
namespace {

using Points = std::span<const MeasuredPoint>;

/// Of one kind on one number of ranks and nodes, in order of size.
struct Curve {
    Points points;
    std::uint64_t ranks() const { return points.front().ranks; }
    std::uint64_t nodes() const { return points.front().nodes; }
};

double between(const MeasuredPoint& a, const MeasuredPoint& b, double bytes) {
    const double share = std::log(bytes / a.bytes) / std::log(b.bytes / a.bytes);
    return std::exp(std::log(a.seconds) + share * std::log(b.seconds / a.seconds));
}

double seconds_on(const Curve& curve, double bytes) {
    const auto after =
        std::lower_bound(curve.points.begin(), curve.points.end(), bytes,
                         [](const MeasuredPoint& point, double size) { return point.bytes < size; });
    if (after == curve.points.begin()) return after->seconds;
    const MeasuredPoint& before = *std::prev(after);
    if (after == curve.points.end()) return before.seconds * bytes / before.bytes;
    return between(before, *after, bytes);
}

/// How unlike two communicators over the same kind of links are.
double distance(const Curve& curve, const GroupPlacement& placement) {
    const auto log_ratio = [](std::uint64_t a, std::uint64_t b) {
        return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
    };
    return log_ratio(curve.ranks(), placement.ranks) + log_ratio(curve.nodes(), placement.nodes);
}

/// Two ranks of a node that were measured alone were a bridged pair, where there are any.
bool measured_on_bridge(const Curve& curve, const ClusterSpec& cluster) {
    return cluster.intra_node == IntraNode::nvlink_pairs && curve.ranks() == 2 * curve.nodes();
}

std::optional<Curve> nearest_curve(CollectiveKind kind, const GroupPlacement& placement,
                                   const ClusterSpec& cluster) {
    const Points all = cluster.calibration.collectives;
    std::optional<Curve> best;
    const auto alike = [](const MeasuredPoint& a, const MeasuredPoint& b) {
        return a.kind == b.kind && a.ranks == b.ranks && a.nodes == b.nodes;
    };
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
        while (end < all.size() && alike(all[begin], all[end])) ++end;
        const Curve curve{all.subspan(begin, end - begin)};
        const bool same_links = (curve.nodes() > 1) == (placement.nodes > 1) &&
                                measured_on_bridge(curve, cluster) == placement.bridged;
        if (all[begin].kind != kind || !same_links) continue;
        if (!best || distance(curve, placement) < distance(*best, placement)) best = curve;
    }
    return best;
}

double law_seconds(CollectiveKind kind, double bytes, const Curve& curve, const ClusterSpec& cluster) {
    ClusterSpec as_built_in = cluster;
    as_built_in.calibration.collectives.clear();
    const std::uint64_t ranks_per_node = (curve.ranks() + curve.nodes() - 1) / curve.nodes();
    const GroupPlacement placement{curve.ranks(), curve.nodes(), ranks_per_node, ranks_per_node,
                                   measured_on_bridge(curve, cluster)};
    return collective_cost(kind, Bytes{static_cast<std::uint64_t>(bytes)}, placement, as_built_in).seconds();
}

/// The same flow in `seconds`: what is longer starts later, what is shorter starts and flows faster.
CollectiveCost in_time(CollectiveCost cost, double seconds) {
    const double bare = cost.latency_s + cost.transfer_s;
    if (seconds >= bare) {
        cost.overhead_s = seconds - bare;
        return cost;
    }
    const double factor = seconds / bare;
    cost.latency_s *= factor;
    cost.transfer_s *= factor;
    cost.unit_bytes *= factor;  // the links carry it faster than the law has it
    cost.cap_bytes_per_s /= factor;
    cost.overhead_s = 0;
    return cost;
}

}  // namespace

CollectiveCost as_measured(const CollectiveCost& cost, CollectiveKind kind, const GroupPlacement& placement,
                           const ClusterSpec& cluster) {
    const auto curve = nearest_curve(kind, placement, cluster);
    if (!curve) return cost;
    const double measured = seconds_on(*curve, cost.bytes);
    if (curve->ranks() == placement.ranks && curve->nodes() == placement.nodes)
        return in_time(cost, measured);
    const double law = law_seconds(kind, cost.bytes, *curve, cluster);
    return law > 0 ? in_time(cost, cost.seconds() * measured / law) : cost;
}

}  // namespace zeroplan
