#include "fabric_links.hpp"

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

/// Whether a link with demand `a` never binds before one with demand `b`.
bool is_within(const std::map<std::uint32_t, double>& a, const std::map<std::uint32_t, double>& b) {
    return std::all_of(a.begin(), a.end(), [&b](const auto& entry) {
        const auto found = b.find(entry.first);
        return found != b.end() && entry.second <= found->second;
    });
}

}  // namespace

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

std::uint32_t FabricLinkTable::add(const Crossing& crossing) {
    const auto number = static_cast<std::uint32_t>(flows_.size());
    flows_.emplace_back();
    for (const auto& [link, units] : crossing) demands_[link][number] += units / routes_.bytes_per_s(link);
    return number;
}

void FabricLinkTable::add_flow(std::uint32_t flow, std::uint32_t crossing, double units) {
    if (units > 0) flows_[crossing].push_back({flow, units});
}

/// Those of the links that may decide how fast anything flows.
std::vector<FabricLinkTable::Demand> FabricLinkTable::deciding() const {
    std::set<Demand> different;
    for (const auto& [link, demand] : demands_) different.insert(demand);
    std::vector<Demand> result;
    for (const Demand& demand : different)
        if (std::none_of(different.begin(), different.end(),
                         [&](const Demand& other) { return &other != &demand && is_within(demand, other); }))
            result.push_back(demand);
    return result;
}

void FabricLinkTable::finish(std::vector<double>& link_bytes_per_s,
                             const std::function<void(std::uint32_t flow, LinkUse use)>& cross) const {
    for (const Demand& demand : deciding()) {
        std::vector<std::uint32_t> flows;
        std::vector<double> seconds;  // of the link for a byte of each flow
        for (const auto& [crossing, per_unit] : demand)
            for (const Flow& flow : flows_[crossing]) {
                flows.push_back(flow.flow);
                seconds.push_back(per_unit * flow.units);
            }
        if (flows.empty()) continue;
        const WholeWeights whole = whole_weights(seconds);
        const auto link = static_cast<std::uint32_t>(link_bytes_per_s.size());
        link_bytes_per_s.push_back(whole.per_unit);
        for (std::size_t i = 0; i < flows.size(); ++i) cross(flows[i], {link, whole.weights[i]});
    }
}

}  // namespace zeroplan::sim
