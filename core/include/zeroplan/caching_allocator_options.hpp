#pragma once
#include <cstdint>
#include <optional>

namespace zeroplan {

/// PYTORCH_CUDA_ALLOC_CONF, as far as it changes what is reserved; `training.allocator` of a scenario.
struct CachingAllocatorOptions {
    bool expandable_segments = false;
    std::optional<std::uint64_t> max_split_size_bytes;  ///< nullopt: no limit
    friend bool operator==(const CachingAllocatorOptions&, const CachingAllocatorOptions&) = default;
};

}  // namespace zeroplan
