#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "engines/megatron_fsdp_state.hpp"

namespace zeroplan {

/// The units that fsdp_double_buffer keeps two sets of buffers for: the largest number of units whose buckets
/// are of equal sizes. source: param_and_grad_buffer.py (FixedPoolAllocator).
std::set<std::uint32_t> double_buffered_units(const FsdpChunk& chunk);

/// Two sets of buffers that units take in turn, made once.
class FsdpPool {
public:
    /// Allocates both sets; `role` and `category` are those of the buffers.
    void fill(const MegatronFsdpState& state, const FsdpChunk& chunk, BufferRole role, Category category,
              DType dtype, ProgramBuilder& builder);
    bool serves(const FsdpBuffers& bucket) const {
        return bucket.layout.unit && units_.count(*bucket.layout.unit) > 0;
    }
    /// A buffer that no bucket holds; no_buffer if both are held, or serves() is false.
    BufferId take(const FsdpBuffers& bucket);
    void give_back(BufferId buffer);
    bool owns(BufferId buffer) const;

private:
    struct Slot {
        BufferId buffer = no_buffer;
        std::size_t place = 0;  ///< of the bucket in its unit
        bool taken = false;
    };
    std::size_t place_of(const FsdpBuffers& bucket) const { return bucket.layout.experts ? 1 : 0; }

    std::set<std::uint32_t> units_;
    std::vector<Slot> slots_;
};

}  // namespace zeroplan
