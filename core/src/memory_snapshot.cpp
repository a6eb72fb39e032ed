#include "zeroplan/memory_snapshot.hpp"

#include <map>
#include <optional>

#include <fmt/format.h>

#include "buffer_names.hpp"
#include "pickle_writer.hpp"
#include "zeroplan/allocator.hpp"
#include "zeroplan/caching_allocator.hpp"

namespace zeroplan {
namespace {

constexpr std::uint64_t most_runs = 2;  // of a repeated section: later ones are as the second

/// A block and, where memory had to be reserved for it, the segment that begins with it.
struct Block {
    std::uint64_t address = 0, bytes = 0, reserved = 0;
    std::uint32_t number = 0;  ///< the caching allocator's
};

/// The plan's allocator by addresses.
class Device {
public:
    Device(AllocatorKind kind, const CachingAllocatorOptions& options) : kind_(kind), cache_(options) {}

    Block allocate(std::uint64_t bytes, std::uint32_t stream) {
        return kind_ == AllocatorKind::arena ? in_arena(bytes) : in_cache(bytes, stream);
    }
    void free(const Block& block) {
        if (kind_ == AllocatorKind::arena)
            arena_.free(block.address - arena_base, block.bytes);
        else
            cache_.free({block.address, block.number});
    }

private:
    static constexpr std::uint64_t arena_base = 1ULL << 40;

    Block in_arena(std::uint64_t bytes) {
        const Bytes before = arena_.reserved();
        const std::uint64_t size = round_up(bytes, arena_alignment);
        const std::uint64_t offset = arena_.allocate(size);
        return {arena_base + offset, size, (arena_.reserved() - before).count(), 0};
    }
    Block in_cache(std::uint64_t bytes, std::uint32_t stream) {
        const std::uint64_t allocated = cache_.allocated(), reserved = cache_.reserved();
        const CachingAllocator::Handle handle = *cache_.allocate(bytes, stream);
        return {handle.address, cache_.allocated() - allocated, cache_.reserved() - reserved, handle.block};
    }

    AllocatorKind kind_;
    ArenaModel arena_;
    CachingAllocator cache_;
};

class Snapshot {
public:
    Snapshot(const Plan& plan, std::uint32_t rank_group)
        : program_(plan.programs[plan.rank_groups[rank_group].program]),
          model_(model_of(plan, plan.rank_groups[rank_group].program)),
          layout_(layout_of(plan, plan.rank_groups[rank_group].program)),
          arena_(plan.allocator == AllocatorKind::arena),
          device_(plan.allocator, plan.scenario.training.allocator),
          blocks_(program_.buffers.size()) {}

    std::string write() {
        out_.begin_dict();
        out_.string("device_traces");
        out_.begin_list();
        out_.begin_list();
        play({&program_.load, 1});
        play({&program_.init, 1});
        play(program_.first_step.empty() ? program_.step : program_.first_step);
        play(program_.step);
        out_.end_list();
        out_.end_list();
        write_segments();
        out_.end_dict();
        return out_.take();
    }

private:
    struct Live {
        Block block;
        std::uint64_t requested = 0;
        std::uint32_t stream = 0;
    };
    struct Segment {
        std::uint64_t bytes = 0;
        std::uint32_t stream = 0;
    };

    void play(std::span<const Section> sections) {
        for (const Section& section : sections)
            for (std::uint64_t run = 0; run < std::min(section.repeat, most_runs); ++run)
                for (std::size_t o = 0; o < section.operations.size(); ++o) play(section, o);
    }

    void play(const Section& section, std::size_t index) {
        const Operation& operation = section.operations[index];
        if (const auto* allocation = std::get_if<Allocate>(&operation.body)) {
            allocate(allocation->buffer, section, index);
        } else if (const auto* release = std::get_if<Free>(&operation.body)) {
            free(release->buffer);
        }
    }

    void allocate(BufferId id, const Section& section, std::size_t index) {
        const Buffer& buffer = program_.buffers[id];
        const std::uint64_t bytes = buffer.elements * bytes_per_element(buffer.dtype);
        if (bytes == 0) return;
        const auto stream = static_cast<std::uint32_t>(section.operations[index].stream);
        Live& live = blocks_[id];
        live = {device_.allocate(bytes, stream), bytes, stream};
        if (live.block.reserved > 0) reserve(live.block, stream);
        event("alloc", live.block.address, live.block.bytes, stream);
        out_.string("frames");
        out_.begin_list();
        frame(tensor_name(buffer, model_, layout_),
              fmt::format("{} ({}, {})", to_string(buffer.role), to_string(buffer.dtype),
                          to_string(buffer.category)),
              0);
        frame(section.name + ": " + served_by(section, index), "operation", index);
        out_.end_list();
        out_.end_dict();
    }

    /// The operation that an allocation is made for: the next one that runs.
    std::string served_by(const Section& section, std::size_t index) const {
        for (std::size_t o = index; o < section.operations.size(); ++o) {
            const OperationBody& body = section.operations[o].body;
            if (!std::holds_alternative<Allocate>(body) && !std::holds_alternative<Free>(body))
                return describe(section.operations[o], program_, model_, layout_);
        }
        return "resident state";
    }

    void free(BufferId id) {
        Live& live = blocks_[id];
        if (live.block.bytes == 0) return;
        for (const char* action : {"free_requested", "free_completed"}) {
            event(action, live.block.address, live.block.bytes, live.stream);
            out_.end_dict();
        }
        device_.free(live.block);
        live = {};
    }

    /// The arena is one segment that grows; the cache's segments begin with the block they were made for.
    void reserve(const Block& block, std::uint32_t stream) {
        if (arena_ && !segments_.empty()) {
            Segment& only = segments_.begin()->second;
            event("segment_map", segments_.begin()->first + only.bytes, block.reserved, stream);
            only.bytes += block.reserved;
        } else {
            event(arena_ ? "segment_map" : "segment_alloc", block.address, block.reserved, stream);
            segments_[block.address] = {block.reserved, stream};
        }
        out_.end_dict();
    }

    /// Opens an event; the caller closes it.
    void event(const char* action, std::uint64_t address, std::uint64_t bytes, std::uint32_t stream) {
        out_.begin_dict();
        out_.entry("action", std::string_view(action));
        out_.entry("addr", address);
        out_.entry("size", bytes);
        out_.entry("stream", std::uint64_t{stream});
    }

    void frame(std::string_view name, std::string_view file, std::uint64_t line) {
        out_.begin_dict();
        out_.entry("name", name);
        out_.entry("filename", file);
        out_.entry("line", line);
        out_.end_dict();
    }

    void write_segments() {
        std::map<std::uint64_t, const Live*> by_address;
        for (const Live& live : blocks_)
            if (live.block.bytes > 0) by_address[live.block.address] = &live;
        out_.string("segments");
        out_.begin_list();
        for (const auto& [address, segment] : segments_) {
            out_.begin_dict();
            out_.entry("device", std::uint64_t{0});
            out_.entry("address", address);
            out_.entry("total_size", segment.bytes);
            out_.entry("stream", std::uint64_t{segment.stream});
            out_.entry("segment_type", std::string_view("large"));
            out_.string("is_expandable");
            out_.boolean(arena_);
            const std::uint64_t allocated = write_blocks(by_address, address, address + segment.bytes);
            out_.entry("allocated_size", allocated);
            out_.entry("active_size", allocated);
            out_.end_dict();
        }
        out_.end_list();
    }

    /// Blocks tile a segment; what is free between two is one inactive block. Returns what is allocated.
    std::uint64_t write_blocks(const std::map<std::uint64_t, const Live*>& by_address, std::uint64_t begin,
                               std::uint64_t end) {
        std::uint64_t allocated = 0, at = begin;
        out_.string("blocks");
        out_.begin_list();
        for (auto found = by_address.lower_bound(begin); found != by_address.end() && found->first < end;
             ++found) {
            const auto& [address, live] = *found;
            if (address > at) write_block(at, address - at, 0, "inactive");
            write_block(address, live->block.bytes, live->requested, "active_allocated");
            allocated += live->block.bytes;
            at = address + live->block.bytes;
        }
        if (at < end) write_block(at, end - at, 0, "inactive");
        out_.end_list();
        return allocated;
    }

    void write_block(std::uint64_t address, std::uint64_t bytes, std::uint64_t requested, const char* state) {
        out_.begin_dict();
        out_.entry("address", address);
        out_.entry("size", bytes);
        out_.entry("requested_size", requested);
        out_.entry("state", std::string_view(state));
        out_.end_dict();
    }

    const StepProgram& program_;
    const ModelSpec& model_;
    const ShardLayout& layout_;
    bool arena_;
    Device device_;
    std::vector<Live> blocks_;
    std::map<std::uint64_t, Segment> segments_;  ///< by address
    PickleWriter out_;
};

}  // namespace

std::string memory_snapshot(const Plan& plan, std::uint32_t rank_group) {
    return Snapshot(plan, rank_group).write();
}

}  // namespace zeroplan
