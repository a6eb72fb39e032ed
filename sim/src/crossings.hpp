#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "zeroplan/fabric_crossing.hpp"
#include "zeroplan/rank_classes.hpp"
#include "zeroplan/timed_program.hpp"

namespace zeroplan::sim {

/// What a job's collectives and messages send over the links of a fabric where each NIC sends one unit,
/// worked out once for all that are alike.
class Crossings {
public:
    Crossings(const RankClasses& classes, const FabricRoutes& routes) : classes_(classes), routes_(routes) {}

    /// The number of what collectives of all communicators alike with `communicator` cross.
    std::uint32_t of_collective(std::uint32_t communicator, const TimedCollective& collective);
    /// Of the messages that all ranks of a class send at once on a channel of a pipeline.
    std::uint32_t of_message(std::uint32_t rank_class, std::uint32_t channel);

    const Crossing& operator[](std::uint32_t number) const { return crossings_[number]; }
    std::uint32_t size() const { return static_cast<std::uint32_t>(crossings_.size()); }

private:
    const RankClasses& classes_;
    const FabricRoutes& routes_;
    std::vector<Crossing> crossings_;
    std::map<std::pair<std::uint32_t, CrossingPattern>, std::uint32_t> collectives_;
    std::map<std::pair<std::uint32_t, bool>, std::uint32_t> messages_;
};

}  // namespace zeroplan::sim
