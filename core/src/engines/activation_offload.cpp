#include "engines/activation_offload.hpp"

#include "engines/host_copies.hpp"
#include "engines/stage_messages.hpp"

namespace zeroplan {
namespace {

/// torchtune/training/_activation_offloading.py, OffloadActivations: max_fwd_stash_size tensors may be on
/// their way before the stream that computes waits for the oldest.
constexpr std::size_t most_on_the_way = 5;

}  // namespace

void ActivationOffload::begin() {
    sending_.clear();
    block_ends_.clear();
}

HostCopy ActivationOffload::copy_of(const Buffer& tensor, std::uint32_t block, CopyPath path) const {
    return {.path = path,
            .role = BufferRole::activation,
            .owner = block,
            .bytes = tensor.elements * bytes_per_element(tensor.dtype) / parts_,
            .pinned = !blocks_};
}

void ActivationOffload::send(const Buffer& tensor, std::uint32_t block) {
    const HostCopy copy = copy_of(tensor, block, CopyPath::to_host);
    if (blocks_) {
        copy_in_line(builder_, Stream::compute, copy);
        return;
    }
    let_oldest_end();
    sending_.push_back(
        {issue_copy(builder_, copy, builder_.last(Stream::compute)), builder_.section_number()});
}

void ActivationOffload::let_oldest_end() {
    while (sending_.size() >= most_on_the_way) {
        if (sending_.front().section == builder_.section_number())
            builder_.hold(Stream::compute, sending_.front().operation);
        sending_.pop_front();
    }
}

/// A copy starts as soon as the host gets there, a block ahead of the stream that computes: it waits until
/// the block before the last one has given up its tensors.
void ActivationOffload::fetch(const Buffer& tensor, std::uint32_t block) {
    const HostCopy copy = copy_of(tensor, block, CopyPath::to_device);
    if (blocks_) {
        copy_in_line(builder_, Stream::compute, copy);
        if (parts_ > 1) gather_parts(builder_, tensor.dtype, tensor.elements);
        return;
    }
    std::vector<OperationId> waits = builder_.last(Stream::to_host);
    if (block_ends_.size() == 2 && block_ends_.front().section == builder_.section_number())
        waits.push_back(block_ends_.front().operation);
    builder_.hold(Stream::compute, issue_copy(builder_, copy, std::move(waits)));
}

void ActivationOffload::end_backward() {
    for (const OperationId id : builder_.last(Stream::compute))
        block_ends_.push_back({id, builder_.section_number()});
    if (block_ends_.size() > 2) block_ends_.pop_front();
}

}  // namespace zeroplan
