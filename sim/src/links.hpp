#pragma once
#include <cstdint>
#include <vector>

#include "zeroplan/collective_cost.hpp"
#include "zeroplan/rank_classes.hpp"

namespace zeroplan::sim {

/// A link that a flow crosses, and how many of its units of bytes pass there.
struct LinkUse {
    std::uint32_t link = 0;
    std::uint32_t weight = 1;
    friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// The links of one GPU, its bridge and its NIC, of every class, which stand for all others of the class:
/// shares are max-min fair, so that of links crossed by the same flows only the tightest can bind.
class LinkTable {
public:
    /// Adds the links to those in `bytes_per_s`.
    LinkTable(const RankClasses& classes, const LinkRates& rates, std::vector<double>& bytes_per_s);
    /// What a flow of `cost` crosses on the way through a rank of class `rank_class`.
    void add_uses(std::vector<LinkUse>& uses, const CollectiveCost& cost, std::uint32_t rank_class) const;

private:
    static constexpr std::uint32_t none = 0xffffffffU;
    std::vector<std::uint32_t> gpu_links_, bridges_, nics_;  ///< by class
};

}  // namespace zeroplan::sim
