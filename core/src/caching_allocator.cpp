#include "zeroplan/caching_allocator.hpp"

#include <algorithm>
#include <utility>

namespace zeroplan {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;
// Names as in the allocator's source.
constexpr std::uint64_t min_block_size = 512;
constexpr std::uint64_t small_size = 1 * mib;
constexpr std::uint64_t small_buffer = 2 * mib;
constexpr std::uint64_t large_buffer = 20 * mib;
constexpr std::uint64_t min_large_alloc = 10 * mib;
constexpr std::uint64_t round_large = 2 * mib;
/// Segments are far apart, so that blocks of two never look like neighbours and an expandable one can grow.
constexpr std::uint64_t address_gap = 1ULL << 44;

std::uint64_t segment_size(std::uint64_t size) {
    if (size <= small_size) return small_buffer;
    if (size < min_large_alloc) return large_buffer;
    return round_up(size, round_large);
}

}  // namespace

std::uint64_t CachingAllocator::rounded(std::uint64_t bytes) {
    return round_up(std::max<std::uint64_t>(bytes, 1), min_block_size);
}

std::optional<CachingAllocator::Handle> CachingAllocator::allocate(std::uint64_t bytes,
                                                                   std::uint32_t stream) {
    const std::uint64_t size = rounded(bytes);
    const bool small = size <= small_size;
    auto block = take_free_block(size, stream, small);
    if (!block)
        block = options_.expandable_segments ? grow_segment(size, stream, small)
                                             : new_segment(size, stream, small);
    if (!block) return std::nullopt;
    use(*block, size);
    return Handle{blocks_[*block].address, *block};
}

CachingAllocator::Handle CachingAllocator::allocate_beyond(std::uint64_t bytes, std::uint32_t stream) {
    if (const auto block = allocate(bytes, stream)) return *block;
    const std::uint64_t capacity = std::exchange(capacity_, ~std::uint64_t{0});
    const auto block = allocate(bytes, stream);
    capacity_ = capacity;
    return *block;
}

std::optional<CachingAllocator::BlockId> CachingAllocator::take_free_block(std::uint64_t size,
                                                                           std::uint32_t stream, bool small) {
    const FreeBlocks& pool = free_blocks(small);
    const auto fit = pool.lower_bound({stream, size, 0, 0});
    if (fit == pool.end() || fit->stream != stream) return std::nullopt;
    if (options_.max_split_size_bytes && !options_.expandable_segments) {
        const std::uint64_t limit = *options_.max_split_size_bytes;
        // Blocks above the limit are kept whole: a small request may not have one, a large one only if it
        // nearly fills it.
        if (size < limit && fit->size >= limit) return std::nullopt;
        if (size >= limit && fit->size >= size + large_buffer) return std::nullopt;
    }
    return fit->block;
}

CachingAllocator::SegmentId CachingAllocator::add_segment(std::uint64_t size, bool expandable) {
    segments_.push_back({.address = next_address_, .size = size, .expandable = expandable});
    next_address_ += address_gap;
    return static_cast<SegmentId>(segments_.size() - 1);
}

std::optional<CachingAllocator::BlockId> CachingAllocator::new_segment(std::uint64_t size,
                                                                       std::uint32_t stream, bool small) {
    const std::uint64_t bytes = segment_size(size);
    if (!make_room(bytes)) return std::nullopt;
    const SegmentId segment = add_segment(bytes, false);
    const BlockId block = append_block({.address = segments_[segment].address,
                                        .size = bytes,
                                        .segment = segment,
                                        .stream = stream,
                                        .small = small});
    insert_free(block);
    reserve(bytes);
    return block;
}

/// Maps pages behind what the stream's segment has; a free block at its end counts towards the request.
std::optional<CachingAllocator::BlockId> CachingAllocator::grow_segment(std::uint64_t size,
                                                                        std::uint32_t stream, bool small) {
    const auto [entry, is_new] = growing_.try_emplace({stream, small});
    if (is_new) entry->second = add_segment(0, true);
    const SegmentId segment = entry->second;
    const BlockId last = segments_[segment].last;
    const bool has_tail = last != no_block && blocks_[last].free;
    const std::uint64_t tail = has_tail ? blocks_[last].size : 0;
    const std::uint64_t bytes = round_up(size - tail, small ? small_buffer : large_buffer);
    if (!make_room(bytes)) return std::nullopt;
    const std::uint64_t end = segments_[segment].address + segments_[segment].size;
    segments_[segment].size += bytes;
    reserve(bytes);
    if (has_tail) {
        erase_free(last);
        blocks_[last].size += bytes;
        insert_free(last);
        return last;
    }
    const BlockId block =
        append_block({.address = end, .size = bytes, .segment = segment, .stream = stream, .small = small});
    insert_free(block);
    return block;
}

bool CachingAllocator::make_room(std::uint64_t bytes) {
    if (reserved_ + bytes <= capacity_) return true;
    empty_cache();
    return reserved_ + bytes <= capacity_;
}

void CachingAllocator::empty_cache() {
    for (Segment& segment : segments_)
        if (segment.first != no_block && segment.first == segment.last && blocks_[segment.first].free)
            release_segment(segment);
}

void CachingAllocator::release_segment(Segment& segment) {
    erase_free(segment.first);
    vacate(segment.first);
    reserved_ -= segment.size;
    // The address range of an expandable one stays for the stream.
    segment.size = 0;
    segment.first = segment.last = no_block;
}

bool CachingAllocator::should_split(std::uint64_t remaining, std::uint64_t size, bool small) const {
    if (small || options_.expandable_segments) return remaining >= min_block_size;
    const bool below_limit = !options_.max_split_size_bytes || size < *options_.max_split_size_bytes;
    return below_limit && remaining > small_size;
}

void CachingAllocator::use(BlockId block, std::uint64_t size) {
    erase_free(block);
    const Block whole = blocks_[block];
    const std::uint64_t remaining = whole.size - size;
    if (remaining > 0 && should_split(remaining, size, whole.small)) {
        blocks_[block].size = size;
        insert_free(insert_block({.address = whole.address + size,
                                  .size = remaining,
                                  .segment = whole.segment,
                                  .stream = whole.stream,
                                  .small = whole.small},
                                 block));
    }
    allocated_ += blocks_[block].size;
    peak_allocated_ = std::max(peak_allocated_, allocated_);
}

void CachingAllocator::free(Handle handle) {
    BlockId block = handle.block;
    if (block >= blocks_.size() || blocks_[block].free || blocks_[block].address != handle.address)
        throw Error(ErrorCode::invalid_input, "caching allocator: freed a block that is not allocated");
    allocated_ -= blocks_[block].size;
    if (const BlockId next = blocks_[block].next; next != no_block && blocks_[next].free) {
        erase_free(next);
        merge_with_next(block);
    }
    if (const BlockId previous = blocks_[block].previous; previous != no_block && blocks_[previous].free) {
        erase_free(previous);
        merge_with_next(previous);
        block = previous;
    }
    insert_free(block);
}

CachingAllocator::BlockId CachingAllocator::append_block(const Block& block) {
    return insert_block(block, segments_[block.segment].last);
}

CachingAllocator::BlockId CachingAllocator::insert_block(const Block& block, BlockId previous) {
    BlockId id = static_cast<BlockId>(blocks_.size());
    if (vacant_.empty()) {
        blocks_.push_back(block);
    } else {
        id = vacant_.back();
        vacant_.pop_back();
        blocks_[id] = block;
    }
    Segment& segment = segments_[block.segment];
    const BlockId next = previous == no_block ? segment.first : blocks_[previous].next;
    blocks_[id].previous = previous;
    blocks_[id].next = next;
    (previous == no_block ? segment.first : blocks_[previous].next) = id;
    (next == no_block ? segment.last : blocks_[next].previous) = id;
    return id;
}

/// Neither of the two is among the free blocks now.
void CachingAllocator::merge_with_next(BlockId block) {
    const BlockId merged = blocks_[block].next, next = blocks_[merged].next;
    blocks_[block].size += blocks_[merged].size;
    blocks_[block].next = next;
    (next == no_block ? segments_[blocks_[block].segment].last : blocks_[next].previous) = block;
    vacate(merged);
}

void CachingAllocator::vacate(BlockId block) {
    blocks_[block].free = true;  // no handle of it is valid any more
    vacant_.push_back(block);
}

void CachingAllocator::insert_free(BlockId id) {
    Block& block = blocks_[id];
    block.free = true;
    block.place = free_blocks(block.small).insert({block.stream, block.size, block.address, id}).first;
}

void CachingAllocator::erase_free(BlockId id) {
    blocks_[id].free = false;
    free_blocks(blocks_[id].small).erase(blocks_[id].place);
}

void CachingAllocator::reserve(std::uint64_t bytes) {
    reserved_ += bytes;
    peak_reserved_ = std::max(peak_reserved_, reserved_);
}

}  // namespace zeroplan
