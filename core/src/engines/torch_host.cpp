#include "engines/torch_host.hpp"

#include <bit>

#include "engines/torch_step.hpp"

namespace zeroplan {

Bytes pinned_block(std::uint64_t bytes) {
    return Bytes{bytes == 0 ? 0 : std::bit_ceil(bytes)};
}

void PinnedBlocks::allocate(std::uint64_t bytes) {
    std::uint64_t& unused = free_[pinned_block(bytes)];
    if (unused > 0)
        --unused;
    else
        total_ += pinned_block(bytes);
}

void PinnedBlocks::free(std::uint64_t bytes) {
    ++free_[pinned_block(bytes)];
}

HostPhases fsdp_host(const TrainingConfig& training, const std::vector<OffloadedShard>& shards,
                     std::uint64_t state_bytes) {
    HostMemory loaded, initialised, trained;
    const bool keeps_shards = training.offload_parameters != OffloadTarget::none;
    const bool copies =
        !keeps_shards && training.offload_optimizer != OffloadTarget::none && !pages_states(training);
    for (const OffloadedShard& shard : shards) {
        if (keeps_shards) {
            loaded.pinned += pinned_block(shard.bytes);
            trained.pinned += pinned_block(shard.gradient_bytes);
        } else if (copies && shard.gradient_bytes > 0) {
            const auto away =
                static_cast<std::uint64_t>(static_cast<double>(shard.bytes) * training.offload_fraction);
            initialised.pinned += pinned_block(away) + pinned_block(away);
        }
    }
    initialised.pinned += loaded.pinned;
    trained.pinned += initialised.pinned;
    trained.pageable = Bytes{state_bytes};
    return {loaded, initialised, trained, trained, trained};
}

HostPhases module_host(const TrainingConfig& training, std::uint64_t module_bytes,
                       const std::vector<OffloadedShard>& trained, std::uint64_t state_bytes) {
    HostPhases phases = fsdp_host(training, trained, state_bytes);
    phases[static_cast<std::size_t>(Phase::load)].pageable += Bytes{module_bytes};
    return phases;
}

}  // namespace zeroplan
