#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "zeroplan/caching_allocator_options.hpp"
#include "zeroplan/memory_timeline.hpp"
#include "zeroplan/step_program.hpp"

namespace zeroplan {

/// PyTorch's caching allocator for one device, without the device: blocks, segments and what stays reserved.
///
/// source: c10/cuda/CUDACachingAllocator.cpp. Sizes round up to 512 B. Requests up to 1 MiB come from
/// segments of 2 MiB, up to 10 MiB from segments of 20 MiB, larger ones from segments of their size rounded
/// up to 2 MiB. The smallest free block that fits is taken, lowest address first, and split if more than 512
/// B (small) or 1 MiB (large) would be left over. Free blocks are kept per stream and merge with free
/// neighbours of their segment. With expandable segments there is one growing segment a stream and pool,
/// mapped in pages of 2 MiB (small) or 20 MiB (large). When `capacity` would be exceeded, whole free segments
/// are given back first, as the allocator does before it fails.
class CachingAllocator {
public:
    /// A block that is allocated.
    struct Handle {
        std::uint64_t address = 0;
        std::uint32_t block = 0;  ///< the allocator's own number of it
        friend bool operator==(const Handle&, const Handle&) = default;
    };

    explicit CachingAllocator(CachingAllocatorOptions options = {},
                              std::uint64_t capacity = ~std::uint64_t{0})
        : options_(options), capacity_(capacity) {}

    /// A block for `bytes` on `stream`; nullopt if it can't be had within the capacity (out of memory).
    std::optional<Handle> allocate(std::uint64_t bytes, std::uint32_t stream = 0);
    /// As allocate(), but goes beyond the capacity where giving back free segments isn't enough.
    Handle allocate_beyond(std::uint64_t bytes, std::uint32_t stream = 0);
    /// Throws Error{invalid_input} for a handle that isn't allocated.
    void free(Handle handle);
    /// Gives back every segment that is free as a whole (torch.cuda.empty_cache).
    void empty_cache();

    std::uint64_t allocated() const { return allocated_; }
    std::uint64_t reserved() const { return reserved_; }
    std::uint64_t peak_allocated() const { return peak_allocated_; }
    std::uint64_t peak_reserved() const { return peak_reserved_; }
    /// As torch.cuda.reset_peak_memory_stats().
    void reset_peaks() {
        peak_allocated_ = allocated_;
        peak_reserved_ = reserved_;
    }

    static std::uint64_t rounded(std::uint64_t bytes);

private:
    using BlockId = std::uint32_t;    ///< index into blocks_
    using SegmentId = std::uint32_t;  ///< index into segments_
    static constexpr BlockId no_block = 0xffffffffU;

    /// Free blocks in the order in which the allocator tries them.
    struct FreeKey {
        std::uint32_t stream;
        std::uint64_t size, address;
        BlockId block;
        friend auto operator<=>(const FreeKey&, const FreeKey&) = default;
    };
    using FreeBlocks = std::set<FreeKey>;

    struct Block {
        std::uint64_t address = 0, size = 0;
        SegmentId segment = 0;
        BlockId previous = no_block, next = no_block;  ///< neighbours in the segment
        std::uint32_t stream = 0;
        bool small = false, free = false;
        FreeBlocks::iterator place{};  ///< while it is free
    };
    struct Segment {
        std::uint64_t address = 0, size = 0;  ///< size 0: given back
        bool expandable = false;
        BlockId first = no_block, last = no_block;
    };

    std::optional<BlockId> take_free_block(std::uint64_t size, std::uint32_t stream, bool small);
    std::optional<BlockId> new_segment(std::uint64_t size, std::uint32_t stream, bool small);
    std::optional<BlockId> grow_segment(std::uint64_t size, std::uint32_t stream, bool small);
    SegmentId add_segment(std::uint64_t size, bool expandable);
    bool make_room(std::uint64_t bytes);
    void release_segment(Segment& segment);
    bool should_split(std::uint64_t remaining, std::uint64_t size, bool small) const;
    void use(BlockId block, std::uint64_t size);
    /// A new block behind the last one of its segment, or behind `previous`.
    BlockId append_block(const Block& block);
    BlockId insert_block(const Block& block, BlockId previous);
    void merge_with_next(BlockId block);
    void vacate(BlockId block);
    FreeBlocks& free_blocks(bool small) { return small ? small_free_ : large_free_; }
    void insert_free(BlockId block);
    void erase_free(BlockId block);
    void reserve(std::uint64_t bytes);

    CachingAllocatorOptions options_;
    std::uint64_t capacity_;
    std::vector<Block> blocks_;
    std::vector<BlockId> vacant_;  ///< of blocks_, merged into others
    std::vector<Segment> segments_;
    std::map<std::pair<std::uint32_t, bool>, SegmentId>
        growing_;  ///< expandable segment of a stream and pool
    FreeBlocks small_free_, large_free_;
    std::uint64_t next_address_ = 1ULL << 40;
    std::uint64_t allocated_ = 0, reserved_ = 0, peak_allocated_ = 0, peak_reserved_ = 0;
};

/// A stage of a program as the caching allocator sees it.
struct CachingPeak {
    MemoryPeak peak;  ///< sizes are those of the blocks, which may be larger than what was asked for
    Bytes reserved;   ///< highest so far
};

/// Runs `stages` one after another from an empty allocator and reports each one's peaks. A repeated section
/// runs at most twice: from then on it finds the blocks it left. Where `capacity` would be exceeded, free
/// segments are given back first; what then still doesn't fit is reserved all the same.
std::vector<CachingPeak> caching_allocator_peaks(const StepProgram& program,
                                                 std::span<const std::span<const Section>> stages,
                                                 const CachingAllocatorOptions& options = {},
                                                 std::uint64_t capacity = ~std::uint64_t{0});

}  // namespace zeroplan
