#include "crossings.hpp"

namespace zeroplan::sim {

std::uint32_t Crossings::of_collective(std::uint32_t communicator, const TimedCollective& collective) {
    const CrossingPattern pattern = crossing_pattern(collective.cost.algorithm, collective.kind);
    const auto [place, is_new] = collectives_.try_emplace({communicator, pattern}, size());
    if (is_new) {
        Crossing& crossing = crossings_.emplace_back();
        std::map<CommunicatorSite, double> alike;  // and how many
        for (const CommunicatorSite& site : classes_.communicators[communicator].sites)
            ++alike[as_seen_by(routes_, site)];
        for (const auto& [site, count] : alike) add(crossing, fabric_crossing(pattern, site, routes_), count);
    }
    return place->second;
}

std::uint32_t Crossings::of_message(std::uint32_t rank_class, std::uint32_t channel) {
    const bool onwards = channel % 2 == 0;
    const auto [place, is_new] = messages_.try_emplace({rank_class, onwards}, size());
    if (is_new) {
        Crossing& crossing = crossings_.emplace_back();
        for (const RankPorts& rank : classes_.classes[rank_class].ports)
            routes_.add_route(crossing, rank.own, onwards ? rank.next : rank.previous, 1);
    }
    return place->second;
}

}  // namespace zeroplan::sim
