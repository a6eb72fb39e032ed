#include <algorithm>

#include "cost/constants.hpp"
#include "cost/nccl_communicator.hpp"

// What collectives take of the GPUs that they run on. Small buffers get fewer channels (src/enqueue.cc); they
// end so soon that it makes no difference.
namespace zeroplan::nccl {

using Algorithm = CollectiveAlgorithm;

double Communicator::thread_blocks(Algorithm algorithm, CollectiveKind kind) const {
    switch (algorithm) {
        case Algorithm::copy:
        case Algorithm::shared_memory:
            return 0;
        case Algorithm::nvls:
        case Algorithm::nvls_tree:
            return law_.nvls_channels();
        case Algorithm::pairwise:
            // Over NVLink a message takes as many channels as carry the link's rate.
            if (law_.across_nodes() && kind != CollectiveKind::all_to_all) return channels_a_network_peer;
            return law_.kernel_channels();
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
