#include "engines/megatron_fsdp_pool.hpp"

#include <algorithm>
#include <map>

namespace zeroplan {
namespace {

/// Sets of buffers that the pool has.
constexpr int sets = 2;

using Sizes = std::vector<std::uint64_t>;

}  // namespace

std::set<std::uint32_t> double_buffered_units(const FsdpChunk& chunk) {
    std::map<std::uint32_t, Sizes> sizes;
    for (const FsdpBuffers& bucket : chunk)
        if (bucket.layout.unit) sizes[*bucket.layout.unit].push_back(bucket.layout.numel);
    std::map<Sizes, std::set<std::uint32_t>> alike;
    for (const auto& [unit, of_unit] : sizes) alike[of_unit].insert(unit);
    const auto most = std::max_element(alike.begin(), alike.end(), [](const auto& a, const auto& b) {
        return a.second.size() < b.second.size();
    });
    return most == alike.end() ? std::set<std::uint32_t>{} : most->second;
}

void FsdpPool::fill(const MegatronFsdpState& state, const FsdpChunk& chunk, BufferRole role,
                    Category category, DType dtype, ProgramBuilder& builder) {
    units_ = double_buffered_units(chunk);
    if (units_.empty()) return;
    for (int set = 0; set < sets; ++set)
        for (const FsdpBuffers& bucket : chunk)
            if (bucket.layout.unit == *units_.begin())
                slots_.push_back(
                    {builder.allocate(state.buffer(bucket, role, category, dtype, bucket.layout.numel)),
                     place_of(bucket), false});
}

BufferId FsdpPool::take(const FsdpBuffers& bucket) {
    if (!serves(bucket)) return no_buffer;
    const auto free = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
        return !slot.taken && slot.place == place_of(bucket);
    });
    if (free == slots_.end()) return no_buffer;
    free->taken = true;
    return free->buffer;
}

void FsdpPool::give_back(BufferId buffer) {
    for (Slot& slot : slots_)
        if (slot.buffer == buffer) slot.taken = false;
}

bool FsdpPool::owns(BufferId buffer) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) { return slot.buffer == buffer; });
}

}  // namespace zeroplan
