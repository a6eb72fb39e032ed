#include <algorithm>

#include "zeroplan/caching_allocator.hpp"

namespace zeroplan {
namespace {

class Replay {
public:
    Replay(const StepProgram& program, const CachingAllocatorOptions& options)
        : program_(program), allocator_(options), blocks_(program.buffers.size()) {}

    CachingPeak run(std::span<const Section> stage) {
        CachingPeak result{
            .peak = {.allocated = Bytes{allocator_.allocated()}, .at_peak = bytes_, .live = live_}};
        bool above_start = false;
        const std::vector<BufferId> before = live_;
        for (std::uint32_t s = 0; s < stage.size(); ++s) {
            for (std::uint64_t pass = 0; pass < std::min<std::uint64_t>(stage[s].repeat, 2); ++pass) {
                const auto& operations = stage[s].operations;
                for (OperationId o = 0; o < operations.size(); ++o) {
                    if (!step(operations[o])) continue;
                    if (Bytes{allocator_.allocated()} <= result.peak.allocated) continue;
                    above_start = true;
                    result.peak = {.allocated = Bytes{allocator_.allocated()},
                                   .at_peak = bytes_,
                                   .section = s,
                                   .operation = o};
                }
            }
        }
        if (above_start) result.peak.live = live_until(stage, result.peak, before);
        result.reserved = Bytes{allocator_.peak_reserved()};
        return result;
    }

private:
    /// True if the operation changed what is allocated.
    bool step(const Operation& operation) {
        if (const auto* allocation = std::get_if<Allocate>(&operation.body)) {
            allocate(allocation->buffer, operation.stream);
        } else if (const auto* release = std::get_if<Free>(&operation.body)) {
            free(release->buffer);
        } else {
            return false;
        }
        return true;
    }

    void allocate(BufferId id, Stream stream) {
        const Buffer& buffer = program_.buffers[id];
        const std::uint64_t before = allocator_.allocated();
        const std::uint64_t bytes = buffer.elements * bytes_per_element(buffer.dtype);
        live_.push_back(id);
        if (bytes == 0) return;
        blocks_[id] = {*allocator_.allocate(bytes, static_cast<std::uint32_t>(stream)), 0};
        blocks_[id].size = allocator_.allocated() - before;
        bytes_[buffer.category] += Bytes{blocks_[id].size};
    }

    void free(BufferId id) {
        live_.erase(std::next(std::find(live_.rbegin(), live_.rend(), id)).base());
        if (blocks_[id].size == 0) return;
        allocator_.free(blocks_[id].handle);
        bytes_[program_.buffers[id].category] -= Bytes{blocks_[id].size};
        blocks_[id].size = 0;
    }

    static std::vector<BufferId> live_until(std::span<const Section> stage, const MemoryPeak& peak,
                                            const std::vector<BufferId>& before) {
        Section part{"", 1, {}};
        for (std::uint32_t s = 0; s <= peak.section; ++s) {
            const auto& operations = stage[s].operations;
            const std::size_t count = s == peak.section ? peak.operation + 1 : operations.size();
            for (std::size_t o = 0; o < count; ++o)
                if (std::holds_alternative<Allocate>(operations[o].body) ||
                    std::holds_alternative<Free>(operations[o].body))
                    part.operations.push_back(operations[o]);
        }
        return live_after({&part, 1}, before);
    }

    struct Taken {
        CachingAllocator::Handle handle = 0;
        std::uint64_t size = 0;
    };

    const StepProgram& program_;
    CachingAllocator allocator_;
    std::vector<Taken> blocks_;
    std::vector<BufferId> live_;
    CategoryBytes bytes_;
};

}  // namespace

std::vector<CachingPeak> caching_allocator_peaks(const StepProgram& program,
                                                 std::span<const std::span<const Section>> stages,
                                                 const CachingAllocatorOptions& options) {
    Replay replay(program, options);
    std::vector<CachingPeak> peaks;
    for (const std::span<const Section> stage : stages) peaks.push_back(replay.run(stage));
    return peaks;
}

}  // namespace zeroplan
