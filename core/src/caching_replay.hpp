#pragma once
#include <functional>
#include <span>
#include <vector>

#include "zeroplan/caching_allocator.hpp"

namespace zeroplan {

/// A program's allocations one after another in PyTorch's caching allocator, from an empty device.
class CachingReplay {
public:
    /// Runs of a repeated section that are played: from the second on each finds the blocks it left.
    static constexpr std::uint64_t most_runs = 2;

    /// Called after every allocation and release: section, which run of it, operation.
    using Observer = std::function<void(std::uint32_t, std::uint64_t, OperationId)>;

    explicit CachingReplay(const StepProgram& program, const CachingAllocatorOptions& options = {},
                           std::uint64_t capacity = ~std::uint64_t{0})
        : program_(program), allocator_(options, capacity), blocks_(program.buffers.size()) {}

    void play(std::span<const Section> sections, const Observer& after);

    /// Sizes are those of the blocks, which may be larger than what was asked for.
    Bytes allocated() const { return Bytes{allocator_.allocated()}; }
    const CategoryBytes& bytes() const { return bytes_; }
    const std::vector<BufferId>& live() const { return live_; }
    Bytes peak_reserved() const { return Bytes{allocator_.peak_reserved()}; }

private:
    /// True if the operation changed what is allocated.
    bool play(const Operation& operation);
    void allocate(BufferId id, Stream stream);
    void free(BufferId id);

    struct Taken {
        CachingAllocator::Handle handle;
        std::uint64_t size = 0;
    };

    const StepProgram& program_;
    CachingAllocator allocator_;
    std::vector<Taken> blocks_;
    std::vector<BufferId> live_;
    CategoryBytes bytes_;
};

}  // namespace zeroplan
