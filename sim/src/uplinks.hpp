#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "links.hpp"
#include "zeroplan/leaf_crossing.hpp"

namespace zeroplan::sim {

/// Links between leaf switches and what joins those, up and down, and which flows cross them. Of those that
/// the same flows cross alike one stands for all.
class Uplinks {
public:
    /// `bytes_per_s` of one, each way; 0: none blocks.
    explicit Uplinks(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}
    void add(std::uint32_t flow, const LeafCrossing& crossing);
    /// Adds the links to `link_bytes_per_s`, and to each flow's what it crosses.
    void finish(std::vector<double>& link_bytes_per_s,
                const std::function<void(std::uint32_t flow, LinkUse use)>& cross) const;

private:
    using Units = std::map<std::uint32_t, double>;  ///< by flow
    double bytes_per_s_;
    std::map<std::uint64_t, Units> up_, down_;  ///< by leaf
};

/// All messages that the ranks of a class send at once on a channel of a pipeline.
LeafCrossing messages(const RankClasses& classes, std::uint32_t rank_class, std::uint32_t channel,
                      const CollectiveCost& cost);

/// Whole numbers in the proportion of `units`, at most 256, and how many of them are a unit: exact where
/// there are such numbers, else to a part in 256 of the largest. SimGrid repeats a link as often as its
/// weight says.
struct WholeWeights {
    std::vector<std::uint32_t> weights;
    double per_unit = 1;
};
WholeWeights whole_weights(const std::vector<double>& units);

}  // namespace zeroplan::sim
