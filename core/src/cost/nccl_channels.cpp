#include "cost/nccl_channels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace zeroplan::nccl {
namespace {

constexpr double giga = 1e9;
constexpr double least_of_found = 0.49;  // graph/search.cc, ncclTopoCompute, "decrease bw until"

Channels fastest(std::span<const double> speeds, double links, double link_gb) {
    Channels best{links, link_gb};  // a link slower than every step of the ladder runs at its own speed
    if (link_gb < speeds.back()) return best;
    best = {};
    for (const double speed : speeds) {
        // Once it has channels, NCCL's search tries no speed of less than half of theirs.
        if (best.count > 0 && speed / best.gb_per_s <= least_of_found) break;
        const double count = links * std::min(16.0, std::floor(link_gb / speed));
        if (count * speed > best.bus_gb_per_s()) best = {count, speed};
    }
    return best;
}

/// Channels of 25 GB/s and more are doubled at half the speed, but on newer GPUs than A100 not those of less
/// than 50 GB/s if there are more than four.
bool are_doubled(double count, double gb_per_s, Generation gpu) {
    const bool newer = gpu == Generation::hopper || gpu == Generation::blackwell;
    return gb_per_s >= 25 && !(newer && gb_per_s < 50 && count > 4);
}

/// Step after step up the ladder from `inter_gb`, up to twice of it, as long as the links of a node carry
/// `most_gb`; a speed that is no step stays.
double raised_gb(double inter_gb, double most_gb, Generation gpu) {
    const auto speeds = channel_speeds_gb(gpu, true);
    auto step = std::find(speeds.begin(), speeds.end(), inter_gb);
    if (step == speeds.end()) return inter_gb;
    while (step != speeds.begin() && *step < 2 * inter_gb && *std::prev(step) <= most_gb) --step;
    return *step;
}

}  // namespace

Channels find_channels(const GroupPlacement& placement, Generation gpu, const LinkRates& rates,
                       const Nics& nics) {
    const double link_gb = rates.intra_node_bytes_per_s / giga;
    const bool across = placement.nodes > 1;
    const auto speeds = channel_speeds_gb(gpu, across);
    Channels found = across ? fastest(speeds, static_cast<double>(nics.count), nics.gb_per_s)
                            : fastest(speeds, 1, link_gb);
    // What is known of a bridge is what collectives reach on it: no speed of the ladder rounds that down.
    if (!across && placement.bridged) found.gb_per_s = link_gb / found.count;
    if (across && placement.ranks_per_node > 1) {
        const auto local = static_cast<double>(placement.ranks_per_node);
        found.gb_per_s = std::min(found.gb_per_s, link_gb * local / (local - 1) / found.count);
    }
    return are_doubled(found.count, found.gb_per_s, gpu) ? Channels{2 * found.count, found.gb_per_s / 2}
                                                         : found;
}

double channel_of_nic_gb(double nic_gb, Generation gpu) {
    const auto speeds = channel_speeds_gb(gpu, true);
    const auto step = std::find_if(speeds.begin(), speeds.end(), [&](double s) { return s <= nic_gb; });
    return step == speeds.end() ? nic_gb : *step;
}

TwoSpeeds chain_channels(const Channels& found, const GroupPlacement& placement, Generation gpu,
                         const LinkRates& rates) {
    const auto local = static_cast<double>(placement.ranks_per_node);
    // A chain passes all links of its GPUs but the last one's; a rank alone on its node has none to pass.
    const double most = local > 1 ? rates.intra_node_bytes_per_s / giga * local / (local - 1) / found.count
                                  : std::numeric_limits<double>::infinity();
    return {found.count, found.gb_per_s, raised_gb(found.gb_per_s, most, gpu)};
}

TwoSpeeds direct_channels(std::uint64_t heads, double nic_gb, const GroupPlacement& placement, Generation gpu,
                          const LinkRates& rates) {
    const auto local = static_cast<double>(placement.ranks_per_node), count = static_cast<double>(heads);
    // A head's link carries its own channel, and of every other head's 1 / (ranks − 1).
    const double most = local > 1 ? rates.intra_node_bytes_per_s / giga * (local - 1) / (local + count - 2)
                                  : std::numeric_limits<double>::infinity();
    double inter = channel_of_nic_gb(std::min(nic_gb, most), gpu), channels = count;
    const double at_most = static_cast<double>(std::min(collnet_max_ranks, placement.ranks_per_node));
    if (are_doubled(count, inter, gpu) && count < at_most) {
        channels = std::min(2 * count, at_most);
        inter /= 2;
    }
    return {channels, inter, raised_gb(inter, most * count / channels, gpu)};
}

}  // namespace zeroplan::nccl
