#include "links.hpp"

namespace zeroplan::sim {

LinkTable::LinkTable(const RankClasses& classes, const LinkRates& rates, std::vector<double>& bytes_per_s) {
    const auto add = [&bytes_per_s](std::vector<std::uint32_t>& links, double rate) {
        links.push_back(rate > 0 ? static_cast<std::uint32_t>(bytes_per_s.size()) : none);
        if (rate > 0) bytes_per_s.push_back(rate);
    };
    for (const AlikeRanks& one : classes.classes) {
        add(gpu_links_, rates.intra_node_bytes_per_s * one.gpu_link_factor);
        add(bridges_, rates.bridge_bytes_per_s * one.gpu_link_factor);
        add(nics_, rates.nic_bytes_per_s * one.nic_factor);
    }
}

void LinkTable::add_uses(std::vector<LinkUse>& uses, const CollectiveCost& cost,
                         std::uint32_t rank_class) const {
    const std::uint32_t gpu_link = (cost.on_bridge ? bridges_ : gpu_links_)[rank_class];
    if (cost.intra_weight > 0 && gpu_link != none) uses.push_back({gpu_link, cost.intra_weight});
    if (cost.nic_weight > 0 && nics_[rank_class] != none)
        uses.push_back({nics_[rank_class], cost.nic_weight});
}

}  // namespace zeroplan::sim
