#include "zeroplan/caching_allocator.hpp"

#include <algorithm>

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
    auto address = take_free_block(size, stream, small);
    if (!address)
        address = options_.expandable_segments ? grow_segment(size, stream, small)
                                               : new_segment(size, stream, small);
    if (!address) return std::nullopt;
    use(blocks_.find(*address), size);
    return address;
}

std::optional<std::uint64_t> CachingAllocator::take_free_block(std::uint64_t size, std::uint32_t stream,
                                                               bool small) {
    std::set<FreeKey>& pool = free_blocks(small);
    const auto fit = pool.lower_bound({stream, size, 0});
    if (fit == pool.end() || fit->stream != stream) return std::nullopt;
    if (options_.max_split_size_bytes && !options_.expandable_segments) {
        const std::uint64_t limit = *options_.max_split_size_bytes;
        // Blocks above the limit are kept whole: a small request may not have one, a large one only if it
        // nearly fills it.
        if (size < limit && fit->size >= limit) return std::nullopt;
        if (size >= limit && fit->size >= size + large_buffer) return std::nullopt;
    }
    return fit->address;
}

std::optional<std::uint64_t> CachingAllocator::new_segment(std::uint64_t size, std::uint32_t stream,
                                                           bool small) {
    const std::uint64_t bytes = segment_size(size);
    if (!make_room(bytes)) return std::nullopt;
    const std::uint64_t address = next_address_;
    next_address_ += address_gap;
    segments_[address] = {bytes, false};
    const auto block = blocks_.emplace(address, Block{bytes, address, stream, small, true}).first;
    insert_free(block);
    reserve(bytes);
    return address;
}

/// Maps pages behind what the stream's segment has; a free block at its end counts towards the request.
std::optional<std::uint64_t> CachingAllocator::grow_segment(std::uint64_t size, std::uint32_t stream,
                                                            bool small) {
    const auto [entry, is_new] = growing_.try_emplace({stream, small}, next_address_);
    const std::uint64_t start = entry->second;
    if (is_new) {
        next_address_ += address_gap;
        segments_[start] = {0, true};
    }
    const std::uint64_t page = small ? small_buffer : large_buffer;
    const std::uint64_t end = start + segments_[start].size;
    auto last = blocks_.lower_bound(end);
    const bool has_tail = last != blocks_.begin() && (--last)->second.segment == start && last->second.free;
    const std::uint64_t tail = has_tail ? last->second.size : 0;
    const std::uint64_t bytes = round_up(size - tail, page);
    if (!make_room(bytes)) return std::nullopt;
    segments_[start].size += bytes;
    reserve(bytes);
    if (has_tail) {
        erase_free(last);
        last->second.size += bytes;
        insert_free(last);
        return last->first;
    }
    insert_free(blocks_.emplace(end, Block{bytes, start, stream, small, true}).first);
    return end;
}

bool CachingAllocator::make_room(std::uint64_t bytes) {
    if (reserved_ + bytes <= capacity_) return true;
    empty_cache();
    return reserved_ + bytes <= capacity_;
}

void CachingAllocator::empty_cache() {
    std::vector<std::uint64_t> whole;
    for (const auto& [address, segment] : segments_) {
        const auto block = blocks_.find(address);
        if (block != blocks_.end() && block->second.free && block->second.size == segment.size)
            whole.push_back(address);
    }
    for (const std::uint64_t address : whole) release_segment(address);
}

void CachingAllocator::release_segment(std::uint64_t address) {
    const auto block = blocks_.find(address);
    erase_free(block);
    blocks_.erase(block);
    Segment& segment = segments_[address];
    reserved_ -= segment.size;
    if (segment.expandable) {
        segment.size = 0;  // the address range stays for the stream
    } else {
        segments_.erase(address);
    }
}

bool CachingAllocator::should_split(std::uint64_t remaining, std::uint64_t size, bool small) const {
    if (small || options_.expandable_segments) return remaining >= min_block_size;
    const bool below_limit = !options_.max_split_size_bytes || size < *options_.max_split_size_bytes;
    return below_limit && remaining > small_size;
}

void CachingAllocator::use(Blocks::iterator block, std::uint64_t size) {
    erase_free(block);
    const std::uint64_t remaining = block->second.size - size;
    if (remaining > 0 && should_split(remaining, size, block->second.small)) {
        Block rest = block->second;
        rest.size = remaining;
        rest.free = true;
        block->second.size = size;
        insert_free(blocks_.emplace(block->first + size, rest).first);
    }
    block->second.free = false;
    allocated_ += block->second.size;
    peak_allocated_ = std::max(peak_allocated_, allocated_);
}

void CachingAllocator::free(Handle handle) {
    auto block = blocks_.find(handle);
    if (block == blocks_.end() || block->second.free)
        throw Error(ErrorCode::invalid_input, "caching allocator: freed a block that is not allocated");
    allocated_ -= block->second.size;
    block->second.free = true;
    const auto next = std::next(block);
    if (next != blocks_.end() && next->second.segment == block->second.segment && next->second.free) {
        erase_free(next);
        merge_with_next(block);
    }
    if (block != blocks_.begin()) {
        const auto previous = std::prev(block);
        if (previous->second.segment == block->second.segment && previous->second.free) {
            erase_free(previous);
            merge_with_next(previous);
            block = previous;
        }
    }
    insert_free(block);
}

void CachingAllocator::merge_with_next(Blocks::iterator block) {
    const auto next = std::next(block);
    block->second.size += next->second.size;
    blocks_.erase(next);
}

void CachingAllocator::insert_free(Blocks::iterator block) {
    free_blocks(block->second.small).insert({block->second.stream, block->second.size, block->first});
}

void CachingAllocator::erase_free(Blocks::iterator block) {
    free_blocks(block->second.small).erase({block->second.stream, block->second.size, block->first});
}

void CachingAllocator::reserve(std::uint64_t bytes) {
    reserved_ += bytes;
    peak_reserved_ = std::max(peak_reserved_, reserved_);
}

}  // namespace zeroplan
