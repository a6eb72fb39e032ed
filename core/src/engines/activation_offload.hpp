#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "engines/program_builder.hpp"

namespace zeroplan {

/// Copies of what a block saves for backward to the host's memory, and back. The memory itself is given up
/// and taken in stream order, as the caching allocator does it.
class ActivationOffload {
public:
    explicit ActivationOffload(ProgramBuilder& builder) : builder_(builder) {}

    /// As deepspeed.checkpointing does it: each copy holds up the stream that computes, and the host's side
    /// is pageable. Of every tensor a rank keeps one of `parts`, which are gathered again. source:
    /// deepspeed/runtime/activation_checkpointing/checkpointing.py, copy_to_device, move_to_device,
    /// partition_activations
    void block_on_copies(std::uint64_t parts) {
        blocks_ = true;
        parts_ = parts;
    }
    void begin();
    void send(const Buffer& tensor, std::uint32_t block);
    void fetch(const Buffer& tensor, std::uint32_t block);
    /// A block's backward has been issued.
    void end_backward();

private:
    struct Issued {
        OperationId operation;
        std::uint32_t section;
    };
    HostCopy copy_of(const Buffer& tensor, std::uint32_t block, CopyPath path) const;
    void let_oldest_end();

    ProgramBuilder& builder_;
    bool blocks_ = false;
    std::uint64_t parts_ = 1;
    std::deque<Issued> sending_;
    std::deque<Issued> block_ends_;  ///< of the last two blocks' backwards
};

}  // namespace zeroplan
