#include "caching_replay.hpp"

#include <algorithm>

namespace zeroplan {

void CachingReplay::play(std::span<const Section> sections, const Observer& after) {
    for (std::uint32_t s = 0; s < sections.size(); ++s) {
        const auto& operations = sections[s].operations;
        for (std::uint64_t run = 0; run < std::min(sections[s].repeat, most_runs); ++run)
            for (OperationId o = 0; o < operations.size(); ++o)
                if (play(operations[o])) after(s, run, o);
    }
}

bool CachingReplay::play(const Operation& operation) {
    if (const auto* allocation = std::get_if<Allocate>(&operation.body)) {
        allocate(allocation->buffer, operation.stream);
    } else if (const auto* release = std::get_if<Free>(&operation.body)) {
        free(release->buffer);
    } else {
        return false;
    }
    return true;
}

void CachingReplay::allocate(BufferId id, Stream stream) {
    const Buffer& buffer = program_.buffers[id];
    const std::uint64_t before = allocator_.allocated();
    const std::uint64_t bytes = buffer.elements * bytes_per_element(buffer.dtype);
    live_.push_back(id);
    if (bytes == 0) return;
    blocks_[id] = {allocator_.allocate_beyond(bytes, static_cast<std::uint32_t>(stream)), 0};
    blocks_[id].size = allocator_.allocated() - before;
    bytes_[buffer.category] += Bytes{blocks_[id].size};
}

void CachingReplay::free(BufferId id) {
    live_.erase(std::next(std::find(live_.rbegin(), live_.rend(), id)).base());
    if (blocks_[id].size == 0) return;
    allocator_.free(blocks_[id].handle);
    bytes_[program_.buffers[id].category] -= Bytes{blocks_[id].size};
    blocks_[id].size = 0;
}

}  // namespace zeroplan
