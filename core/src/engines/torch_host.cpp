#include "engines/torch_host.hpp"

#include <bit>

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
    HostMemory loaded, trained;
    if (training.offload_parameters != OffloadTarget::none)
        for (const OffloadedShard& shard : shards) {
            loaded.pinned += pinned_block(shard.bytes);
            trained.pinned += pinned_block(shard.gradient_bytes);
        }
    trained.pinned += loaded.pinned;
    trained.pageable = Bytes{state_bytes};
    return {loaded, loaded, trained, trained, trained};
}

}  // namespace zeroplan
