#include "zeroplan/allocator.hpp"

namespace zeroplan {

std::uint64_t ArenaModel::allocate(std::uint64_t bytes) {
    const auto fit = by_size_.lower_bound(bytes);
    if (fit == by_size_.end()) {
        // A hole at the very end can grow.
        std::uint64_t offset = end_;
        if (!holes_.empty()) {
            const auto last = std::prev(holes_.end());
            if (last->first + last->second == end_) {
                offset = last->first;
                erase_hole(last);
            }
        }
        end_ = checked_sum(offset, bytes, "arena size");
        return offset;
    }
    const std::uint64_t offset = fit->second, size = fit->first;
    erase_hole(holes_.find(offset));
    if (size > bytes) insert_hole(offset + bytes, size - bytes);
    return offset;
}

void ArenaModel::free(std::uint64_t offset, std::uint64_t bytes) {
    auto next = holes_.lower_bound(offset);
    if (next != holes_.end() && next->first == offset + bytes) {
        bytes += next->second;
        const auto merged = next++;
        erase_hole(merged);
    }
    if (next != holes_.begin()) {
        const auto previous = std::prev(next);
        if (previous->first + previous->second == offset) {
            offset = previous->first;
            bytes += previous->second;
            erase_hole(previous);
        }
    }
    insert_hole(offset, bytes);
}

void ArenaModel::insert_hole(std::uint64_t offset, std::uint64_t bytes) {
    holes_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
}

void ArenaModel::erase_hole(std::map<std::uint64_t, std::uint64_t>::iterator hole) {
    const auto [first, last] = by_size_.equal_range(hole->second);
    for (auto it = first; it != last; ++it) {
        if (it->second != hole->first) continue;
        by_size_.erase(it);
        break;
    }
    holes_.erase(hole);
}

std::vector<Bytes> arena_reserved(const StepProgram& program,
                                  std::span<const std::span<const Section>> stages) {
    ArenaModel arena;
    std::vector<std::uint64_t> offsets(program.buffers.size(), 0);
    std::vector<Bytes> reserved;
    for (const std::span<const Section> stage : stages) {
        for (const Section& section : stage) {
            for (const Operation& operation : section.operations) {
                if (const auto* allocation = std::get_if<Allocate>(&operation.body)) {
                    const std::uint64_t bytes = allocated_bytes(program.buffers[allocation->buffer]).count();
                    if (bytes > 0) offsets[allocation->buffer] = arena.allocate(bytes);
                } else if (const auto* release = std::get_if<Free>(&operation.body)) {
                    const std::uint64_t bytes = allocated_bytes(program.buffers[release->buffer]).count();
                    if (bytes > 0) arena.free(offsets[release->buffer], bytes);
                }
            }
        }
        reserved.push_back(arena.reserved());
    }
    return reserved;
}

}  // namespace zeroplan
