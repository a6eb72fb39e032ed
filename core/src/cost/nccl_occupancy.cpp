#include <algorithm>
#include <bit>
#include <cmath>

#include "cost/constants.hpp"
#include "cost/nccl_communicator.hpp"

// What collectives take of the GPUs that they run on. Small buffers get fewer channels (src/enqueue.cc); they
// end so soon that it makes no difference.
namespace zeroplan::nccl {
namespace {

using Algorithm = CollectiveAlgorithm;

double power_of_two_above(double n) {
    return static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(std::ceil(n))));
}

}  // namespace

/// Each ring that was searched is built twice, with CollNet half as many more, and once more where newer GPUs
/// of few ranks a node have fast ones. source: src/graph/connect.cc, ncclTopoPostset
double Law::kernel_channels() const {
    if (logged_channels_ > 0) return logged_channels_;
    double channels = std::min(max_channels, 2 * channels_.count);
    if (network_reduces() && placement_.ranks > placement_.nodes) {
        const TwoSpeeds chain = chain_channels(channels_, placement_, gpu_, rates_);
        if (chain.intra_gb > chain.inter_gb)
            channels = std::min(max_channels, channels + std::floor(channels / 2));
    }
    const bool newer = gpu_ == Generation::hopper || gpu_ == Generation::blackwell;
    const double few = 16, fast_gb = 45;
    return newer && across_nodes() && channels_.gb_per_s > fast_gb && channels < few ? 2 * channels
                                                                                     : channels;
}

double Law::nvls_channels() const {
    return nccl::nvls_channels(gpu_, placement_.nodes, placement_.ranks_per_node, nic_gb());
}

/// Over the network enough to fill a NIC, over NVLink all. source: src/graph/paths.cc, ncclTopoGetNchannels,
/// ncclTopoComputeP2pChannels
double Law::message_channels() const {
    constexpr double channel_of_network_gb = 14;
    const double all = all_to_all_channels();
    if (across_nodes()) return std::min(all, power_of_two_above(nic_gb() / channel_of_network_gb));
    return intra_ == Hardware::pci ? std::min(all, 2.0) : all;
}

double Law::all_to_all_channels() const {
    return power_of_two_above(kernel_channels());
}

double Communicator::thread_blocks(Algorithm algorithm, CollectiveKind kind) const {
    switch (algorithm) {
        case Algorithm::copy:
        case Algorithm::shared_memory:
            return 0;
        case Algorithm::nvls:
        case Algorithm::nvls_tree:
            return law_.nvls_channels();
        case Algorithm::pairwise:
            return kind == CollectiveKind::all_to_all ? law_.all_to_all_channels() : law_.message_channels();
        default:
            return law_.kernel_channels();
    }
}

/// A switch that reduces leaves a GPU one read and one write of its part.
double Communicator::memory_accesses(Algorithm algorithm, CollectiveKind kind) const {
    const double gathers = constants_->gather_memory_accesses.value;
    const double reduces = constants_->reduce_memory_accesses.value;
    if (algorithm == Algorithm::nvls) return gathers;
    if (kind == CollectiveKind::reduce_scatter) return reduces;
    return kind == CollectiveKind::all_reduce ? (gathers + reduces) / 2 : gathers;
}

void Communicator::set_occupancy(CollectiveCost& cost, CollectiveKind kind) const {
    cost.channels = thread_blocks(cost.algorithm, kind);
    cost.memory_bytes = static_cast<double>(cost.intra_weight + cost.nic_weight) * cost.unit_bytes *
                        memory_accesses(cost.algorithm, kind);
}

}  // namespace zeroplan::nccl
