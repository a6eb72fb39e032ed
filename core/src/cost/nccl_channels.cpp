#include "cost/nccl_channels.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace zeroplan::nccl {
namespace {

constexpr double giga = 1e9;

Channels fastest(std::span<const double> speeds, double links, double link_gb) {
    Channels best{links, link_gb};  // a link slower than every step of the ladder runs at its own speed
    if (link_gb < speeds.back()) return best;
    best = {};
    for (const double speed : speeds) {
        const double count = links * std::min(16.0, std::floor(link_gb / speed));
        if (count * speed > best.bus_gb_per_s()) best = {count, speed};
    }
    return best;
}

}  // namespace

Channels find_channels(const GroupPlacement& placement, Generation gpu, const LinkRates& rates) {
    const double link_gb = rates.intra_node_bytes_per_s / giga;
    const bool across = placement.nodes > 1;
    const auto speeds = channel_speeds_gb(gpu, across);
    Channels found = across
                         ? fastest(speeds, static_cast<double>(placement.rails), rates.nic_bytes_per_s / giga)
                         : fastest(speeds, 1, link_gb);
    if (across && placement.ranks_per_node > 1) {
        const auto local = static_cast<double>(placement.ranks_per_node);
        found.gb_per_s = std::min(found.gb_per_s, link_gb * local / (local - 1) / found.count);
    }
    // Channels of 25 GB/s and more are doubled at half the speed, but on newer GPUs than A100 not those of
    // less than 50 GB/s if there are more than four.
    const bool newer = gpu == Generation::hopper || gpu == Generation::blackwell;
    const bool doubled = found.gb_per_s >= 25 && !(newer && found.gb_per_s < 50 && found.count > 4);
    return doubled ? Channels{2 * found.count, found.gb_per_s / 2} : found;
}

}  // namespace zeroplan::nccl
