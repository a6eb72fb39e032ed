#pragma once
#include <stdexcept>
#include <vector>

#include "zeroplan/runner/arena.hpp"
#include "zeroplan/step_program.hpp"

namespace zeroplan::runner {

/// Where a program's buffers are while it runs.
class BufferTable {
public:
    BufferTable(const std::vector<Buffer>& buffers, Arena& arena)
        : buffers_(buffers), arena_(arena), memory_(buffers.size(), nullptr) {}

    const Buffer& spec(BufferId id) const { return buffers_.at(id); }
    bool is_live(BufferId id) const { return memory_.at(id) != nullptr; }
    /// Throws std::logic_error if the buffer isn't live.
    void* memory(BufferId id) const {
        if (!is_live(id)) throw std::logic_error("the program uses a buffer that isn't allocated");
        return memory_[id];
    }
    void allocate(BufferId id) {
        if (is_live(id)) throw std::logic_error("the program allocates a buffer twice");
        memory_[id] = arena_.allocate(allocated_bytes(spec(id)), spec(id).category);
    }
    void release(BufferId id) {
        arena_.release(memory(id));
        memory_[id] = nullptr;
    }
    std::size_t size() const { return buffers_.size(); }

private:
    const std::vector<Buffer>& buffers_;
    Arena& arena_;
    std::vector<void*> memory_;
};

}  // namespace zeroplan::runner
