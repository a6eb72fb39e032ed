#include "uplinks.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace zeroplan::sim {
namespace {

constexpr double largest_weight = 256;
constexpr double rounding = 1e-9;

bool are_whole(const std::vector<double>& units, double per_unit) {
    return std::all_of(units.begin(), units.end(), [per_unit](double value) {
        const double scaled = value * per_unit;
        return scaled <= largest_weight && std::abs(scaled - std::round(scaled)) <= rounding * scaled;
    });
}

}  // namespace

LeafCrossing messages(const RankClasses& classes, std::uint32_t rank_class, std::uint32_t channel,
                      const CollectiveCost& cost) {
    LeafCrossing crossing;
    for (const RankLeaves& rank : classes.classes[rank_class].leaves) {
        const std::uint64_t to = channel % 2 == 0 ? rank.next : rank.previous;
        if (rank.own == to || cost.nic_weight == 0) continue;
        crossing.up[rank.own] += cost.nic_weight;
        crossing.down[to] += cost.nic_weight;
    }
    return crossing;
}

WholeWeights whole_weights(const std::vector<double>& units) {
    const auto [least, most] = std::minmax_element(units.begin(), units.end());
    WholeWeights result;
    result.per_unit = largest_weight / *most;
    for (double parts = 1; parts <= largest_weight; ++parts) {
        if (!are_whole(units, parts / *least)) continue;
        result.per_unit = parts / *least;
        break;
    }
    for (const double value : units)
        result.weights.push_back(
            static_cast<std::uint32_t>(std::max(1.0, std::round(value * result.per_unit))));
    return result;
}

void Uplinks::add(std::uint32_t flow, const LeafCrossing& crossing) {
    if (!(bytes_per_s_ > 0)) return;
    for (const auto& [leaf, units] : crossing.up) up_[leaf][flow] += units;
    for (const auto& [leaf, units] : crossing.down) down_[leaf][flow] += units;
}

void Uplinks::finish(std::vector<double>& link_bytes_per_s,
                     const std::function<void(std::uint32_t flow, LinkUse use)>& cross) const {
    std::set<Units> different;
    for (const auto* links : {&up_, &down_})
        for (const auto& [leaf, units] : *links) different.insert(units);
    for (const Units& units : different) {
        std::vector<double> values;
        for (const auto& [flow, value] : units) values.push_back(value);
        const WholeWeights whole = whole_weights(values);
        const auto link = static_cast<std::uint32_t>(link_bytes_per_s.size());
        link_bytes_per_s.push_back(bytes_per_s_ * whole.per_unit);
        std::size_t i = 0;
        for (const auto& [flow, value] : units) cross(flow, {link, whole.weights[i++]});
    }
}

}  // namespace zeroplan::sim
